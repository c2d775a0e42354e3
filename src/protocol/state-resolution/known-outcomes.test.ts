import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { resolveState } from '../../../test/support/rooms/resolve-state.ts';
import { version } from '../authorization/test/test-events.ts';
import { type RoomEvent, type StateMap, stateMapKey } from '../event.ts';
import { eventIdsOf, eventsOfTable } from './test/event-table.ts';
import { histories, stateResets } from './test/known-outcomes.ts';
import { MemorySource, stateOf } from './test/memory-source.ts';

const sortedIds = (state: StateMap<string>): string[] => [...state.values()].sort();

/** Resolves one state for each event, which consists of this event alone. */
function resolveSingleEvents(events: readonly RoomEvent[]): StateMap<string> {
  const states = events.map((event) => stateOf([event]));
  return resolveState(events[0]!.version, states, new MemorySource(events));
}

/** Follows the `prev_events`: resolves the states before each event, as a server in the room does. */
function resolveAlongHistory(events: readonly RoomEvent[]): StateMap<string> {
  const source = new MemorySource(events);
  const statesAfter = new Map<string, StateMap<string>>();
  const cited = new Set(events.flatMap((event) => event.prevEventIds));
  const resolve = (states: StateMap<string>[]) => resolveState(events[0]!.version, states, source);
  for (const event of events) {
    const stateBefore = resolve(event.prevEventIds.map((id) => statesAfter.get(id)!));
    const state = new Map(stateBefore).set(stateMapKey(event.type, event.stateKey!), event.eventId);
    statesAfter.set(event.eventId, state);
  }
  const extremities = events.filter((event) => !cited.has(event.eventId));
  return resolve(extremities.map((event) => statesAfter.get(event.eventId)!));
}

describe('state resolution of rooms with known outcomes', () => {
  for (const { name, events: rows, resolved } of histories) {
    const events = eventsOfTable(version(10), rows);

    it(`resolves ${name}, from states of one event each`, () => {
      assert.deepEqual(sortedIds(resolveSingleEvents(events)), eventIdsOf(resolved).sort());
    });

    it(`resolves ${name}, along the history`, () => {
      assert.deepEqual(sortedIds(resolveAlongHistory(events)), eventIdsOf(resolved).sort());
    });
  }

  for (const { name, events: rows, states, resolved } of stateResets) {
    for (const [versionId, outcome] of Object.entries(resolved)) {
      it(`resolves ${name}, in version ${versionId}`, () => {
        const source = new MemorySource(eventsOfTable(version(versionId), rows));
        const stateMaps = states.map((ids) => stateOf(eventIdsOf(ids).map((id) => source.event(id)!)));
        const state = resolveState(version(versionId), stateMaps, source);
        assert.deepEqual(sortedIds(state), eventIdsOf(outcome).sort());
      });
    }
  }
});
