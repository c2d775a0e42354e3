import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { resolveState } from '../../../test/support/rooms/resolve-state.ts';
import { testEvent, version } from '../authorization/test/test-events.ts';
import { type RoomEvent, type StateMap, splitStateMapKey, stateMapKey } from '../event.ts';
import type { JsonObject } from '../json.ts';
import { MemorySource, stateOf } from './test/memory-source.ts';

/** An event as the fixtures write it, whatever its room version. */
interface FixtureEvent {
  readonly event_id: string;
  readonly room_id?: string;
  readonly sender: string;
  readonly type: string;
  readonly content: JsonObject;
  readonly state_key: string;
  readonly origin_server_ts: number;
  readonly prev_events: readonly string[];
  readonly auth_events: readonly string[];
}

function read<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`./test/fixtures/ruma/${name}.json`, import.meta.url), 'utf8'));
}

/** All events of these files, in their order; the first one creates the room and names the version. */
function readEvents(names: readonly string[]): RoomEvent[] {
  const events = names.flatMap((name) => read<FixtureEvent[]>(name));
  const roomVersion = version(String(events[0]?.content['room_version']));
  return events.map((event) =>
    testEvent(roomVersion, {
      type: event.type,
      sender: event.sender,
      stateKey: event.state_key,
      content: event.content,
      eventId: event.event_id,
      roomId: event.room_id ?? `!${event.event_id.slice(1)}`,
      authEventIds: event.auth_events,
      prevEventIds: event.prev_events,
      originServerTs: event.origin_server_ts,
    }),
  );
}

/** What the fixture says is the outcome: event ids in the order of types and state keys. */
function expected(name: string): string[] {
  return read<{ event_id: string }[]>(`resolved/${name}`).map((event) => event.event_id);
}

function idsOf(state: StateMap<string>): string[] {
  const entries = [...state].map(([key, id]) => ({ key: splitStateMapKey(key).join('\0'), id }));
  return entries.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ id }) => id);
}

/** Takes each event for a state of its own, because nothing is known about what came together. */
function resolveAtOnce(events: readonly RoomEvent[], before: readonly StateMap<string>[] = []) {
  const source = new MemorySource(events);
  return resolveState(events[0]!.version, [...before, ...events.map((event) => stateOf([event]))], source);
}

/** Walks along the `prev_events`, as a server in the room does. */
function resolveStepByStep(events: readonly RoomEvent[]): StateMap<string> {
  const source = new MemorySource(events);
  const after = new Map<string, StateMap<string>>();
  const cited = new Set(events.flatMap((event) => event.prevEventIds));
  const resolve = (states: StateMap<string>[]) => resolveState(events[0]!.version, states, source);
  for (const event of events) {
    const before = resolve(event.prevEventIds.map((id) => after.get(id)!));
    const state = new Map(before).set(stateMapKey(event.type, event.stateKey!), event.eventId);
    after.set(event.eventId, state);
  }
  const ends = events.filter((event) => !cited.has(event.eventId));
  return resolve(ends.map((event) => after.get(event.eventId)!));
}

const histories: readonly { name: string; files: readonly string[] }[] = [
  { name: 'minimal-private-chat', files: ['bootstrap-private-chat'] },
  { name: 'minimal-public-chat', files: ['bootstrap-public-chat'] },
  {
    name: 'origin-server-ts-tiebreak',
    files: ['bootstrap-private-chat', 'origin-server-ts-tiebreak'],
  },
  {
    name: 'ban-vs-power-levels',
    files: ['bootstrap-public-chat', 'ban-vs-power-levels-alice', 'ban-vs-power-levels-bob'],
  },
  {
    name: 'topic-vs-power-levels',
    files: ['bootstrap-public-chat', 'topic-vs-power-levels-alice', 'topic-vs-power-levels-bob'],
  },
  {
    name: 'power-levels-admin-vs-mod',
    files: ['bootstrap-public-chat', 'power-levels-admin-vs-mod-alice', 'power-levels-admin-vs-mod-bob'],
  },
  {
    name: 'topic-vs-ban',
    files: ['bootstrap-public-chat', 'topic-vs-ban-common', 'topic-vs-ban-alice', 'topic-vs-ban-bob'],
  },
  {
    name: 'join-rules-vs-join',
    files: [
      'bootstrap-public-chat',
      'join-rules-vs-join-common',
      'join-rules-vs-join-alice',
      'join-rules-vs-join-ella',
    ],
  },
  {
    name: 'concurrent-joins',
    files: ['bootstrap-public-chat', 'concurrent-joins-charlie', 'concurrent-joins-ella'],
  },
];

describe('histories of ruma-state-res', () => {
  for (const { name, files } of histories) {
    test(`${name}, all events at once`, () => {
      assert.deepEqual(idsOf(resolveAtOnce(readEvents(files))), expected(name));
    });

    test(`${name}, step by step`, () => {
      assert.deepEqual(idsOf(resolveStepByStep(readEvents(files))), expected(name));
    });
  }
});

const stateSets = [
  { problem: 'A', states: ['state-bob', 'state-charlie'] },
  { problem: 'B', states: ['state-eve', 'state-zara'] },
];

describe('state resets of MSC4297', () => {
  for (const { problem, states } of stateSets) {
    for (const [algorithm, roomVersion] of [
      ['2-0', 'v11'],
      ['2-1', 'v12'],
    ]) {
      test(`problem ${problem} in ${roomVersion}`, () => {
        const folder = `MSC4297-problem-${problem}`;
        const source = new MemorySource(readEvents([`${folder}/pdus-${roomVersion}`]));
        const sets = states.map((name) =>
          stateOf(read<string[]>(`${folder}/${name}`).map((id) => source.event(id)!)),
        );
        const [first] = source.events.values();
        const resolved = resolveState(first!.version, sets, source);
        const outcome = `msc4297-problem-${problem.toLowerCase()}-state-res-v${algorithm}`;
        assert.deepEqual(idsOf(resolved), expected(outcome));
      });
    }
  }
});
