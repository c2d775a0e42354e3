import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { resolveState } from '../../../test/support/rooms/resolve-state.ts';
import { authorize } from '../authorization/index.ts';
import { lookupIn, testEvent, version } from '../authorization/test/test-events.ts';
import type { RoomEvent } from '../event.ts';
import type { JsonObject } from '../json.ts';
import { MemorySource, stateOf } from './test/memory-source.ts';

/** An event in the format of the fixture: auth and previous events are indexes in the room's list of events. */
interface FixtureEvent {
  readonly event_id: string;
  readonly type: string;
  readonly sender: string;
  readonly state_key?: string;
  readonly content: JsonObject;
  readonly origin_server_ts: number;
  readonly depth: number;
  readonly auth_events: readonly number[];
  readonly prev_events: readonly number[];
  readonly redacts?: string;
  /** The servers that signed it, where signatures matter. */
  readonly signed_by?: readonly string[];
}

/** States are lists of indexes in `events`. */
interface FixtureRoom {
  readonly room_version: string;
  readonly room_id: string;
  readonly events: readonly FixtureEvent[];
  readonly states: readonly (readonly number[])[];
  /** The state to which Synapse resolved `states`. */
  readonly resolved: readonly number[];
  /** Further events, the state in which each was tried, and whether Synapse allowed it. */
  readonly attempts: readonly {
    readonly event: FixtureEvent;
    readonly state: readonly number[];
    readonly allowed: boolean;
  }[];
}

const file = new URL('./test/fixtures/forked-rooms.json', import.meta.url);
const rooms: readonly FixtureRoom[] = JSON.parse(readFileSync(file, 'utf8'));

function toEvent(fixture: FixtureEvent, room: FixtureRoom): RoomEvent {
  const idAt = (index: number) => room.events[index]!.event_id;
  const signatures = (fixture.signed_by ?? []).map((server) => [server, { 'ed25519:1': 'signature' }]);
  return testEvent(version(room.room_version), {
    type: fixture.type,
    sender: fixture.sender,
    stateKey: fixture.state_key,
    content: fixture.content,
    eventId: fixture.event_id,
    roomId: room.room_id,
    originServerTs: fixture.origin_server_ts,
    depth: fixture.depth,
    authEventIds: fixture.auth_events.map(idAt),
    prevEventIds: fixture.prev_events.map(idAt),
    signatures: Object.fromEntries(signatures),
    ...(fixture.redacts === undefined ? {} : { redacts: fixture.redacts }),
  });
}

describe('state resolution and authorization, compared with Synapse', () => {
  rooms.forEach((room, index) => {
    const events = room.events.map((event) => toEvent(event, room));
    const eventsAt = (indexes: readonly number[]) => indexes.map((each) => events[each]!);

    test(`resolves the states of room ${index}, version ${room.room_version}, as Synapse does`, () => {
      const states = room.states.map((indexes) => stateOf(eventsAt(indexes)));
      const resolved = resolveState(version(room.room_version), states, new MemorySource(events));
      assert.deepEqual(
        new Set(resolved.values()),
        new Set(eventsAt(room.resolved).map(({ eventId }) => eventId)),
      );
    });

    test(`allows the same events in room ${index}, version ${room.room_version}, as Synapse does`, () => {
      for (const attempt of room.attempts) {
        const verdict = authorize(toEvent(attempt.event, room), lookupIn(eventsAt(attempt.state)));
        assert.equal(verdict.allowed, attempt.allowed, JSON.stringify({ verdict, event: attempt.event }));
      }
    });
  });
});
