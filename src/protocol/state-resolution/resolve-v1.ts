import { hash } from 'node:crypto';
import { authorize } from '../authorization/index.ts';
import { type RoomEvent, type StateMap, splitStateMapKey, stateMapKey } from '../event.ts';
import type { StateResolutionSource } from './source.ts';
import { eachInSteps } from './steps.ts';

/**
 * Resolves state by algorithm v1. The algorithm is known to reset state; only rooms of version 1 use it. Resolves
 * conflicts in the order of the specification:
 * 1. `m.room.power_levels`,
 * 2. `m.room.join_rules`,
 * 3. `m.room.member`,
 * 4. all other types.
 * All conflicts of one step are resolved against the same state and then added to it together, so that their
 * order does not matter. If step 4 allows none of the events in a conflict, the earliest remains.
 * Source: https://spec.matrix.org/latest/rooms/v1/#state-resolution
 */
export function* resolveV1(
  stateSets: readonly StateMap<string>[],
  source: StateResolutionSource,
): Generator<void, StateMap<string>> {
  const { state, conflicts } = separateConflicts(stateSets, source);
  yield* resolveConflictsOfType('m.room.power_levels', lastAllowedInSequence, state, conflicts, source);
  yield* resolveConflictsOfType('m.room.join_rules', lastAllowedInSequence, state, conflicts, source);
  yield* resolveConflictsOfType('m.room.member', lastAllowedInSequence, state, conflicts, source);
  yield* resolveConflictsOfType(undefined, latestAllowed, state, conflicts, source);
  return state;
}

/** `stateMapKey` to the events in conflict for it, each once, from the earliest to the latest. */
type ConflictsByKey = Map<string, RoomEvent[]>;

/**
 * Separates the entries with a conflict: sets name different events for the same key. A set that lacks a key causes no
 * conflict.
 */
function separateConflicts(
  stateSets: readonly StateMap<string>[],
  source: StateResolutionSource,
): { state: Map<string, string>; conflicts: ConflictsByKey } {
  const ids = new Map<string, Set<string>>();
  for (const set of stateSets) {
    for (const [key, id] of set) {
      const seen = ids.get(key);
      if (seen === undefined) ids.set(key, new Set([id]));
      else seen.add(id);
    }
  }
  const state = new Map<string, string>();
  const conflicts: ConflictsByKey = new Map();
  for (const [key, contenders] of ids) {
    const [only, ...others] = contenders.size === 1 ? contenders : knownIds(contenders, source);
    if (only === undefined) continue;
    if (others.length === 0) state.set(key, only);
    else conflicts.set(key, [only, ...others].map((id) => source.event(id)!).sort(compareByDepth));
  }
  return { state, conflicts };
}

function knownIds(ids: Iterable<string>, source: StateResolutionSource): string[] {
  return [...ids].filter((id) => source.event(id) !== undefined);
}

/** By ascending depth, then descending SHA-1 of the event id. */
function compareByDepth(a: RoomEvent, b: RoomEvent): number {
  return a.depth - b.depth || (hash('sha1', a.eventId) > hash('sha1', b.eventId) ? -1 : 1);
}

/** Chooses one of the events in conflict for a key, given the state that is resolved so far. */
type ChooseEvent = (events: readonly RoomEvent[], isAllowed: AllowedIn, key: string) => RoomEvent;

/** Whether the event is allowed in the resolved state, with `current` (if it is defined) as the entry for `key`. */
type AllowedIn = (event: RoomEvent, key: string, current: RoomEvent | undefined) => boolean;

/** Resolves all conflicts of that type, or all that remain. */
function* resolveConflictsOfType(
  type: string | undefined,
  choose: ChooseEvent,
  state: Map<string, string>,
  conflicts: ConflictsByKey,
  source: StateResolutionSource,
): Generator<void> {
  const isAllowed: AllowedIn = (event, key, current) =>
    authorize(event, (requestedType, stateKey) => {
      const requestedKey = stateMapKey(requestedType, stateKey);
      if (requestedKey === key && current !== undefined) return current;
      const id = state.get(requestedKey);
      return id === undefined ? undefined : source.event(id);
    }).allowed;
  const resolved = new Map<string, string>();
  yield* eachInSteps(conflicts, ([key, events]) => {
    if (type !== undefined && splitStateMapKey(key)[0] !== type) return;
    resolved.set(key, choose(events, isAllowed, key).eventId);
  });
  for (const [key, id] of resolved) {
    state.set(key, id);
    conflicts.delete(key);
  }
}

/**
 * Walks through the events as long as each event is allowed in the state after the previous event. The first event
 * counts as allowed.
 * @returns the last of these events
 */
const lastAllowedInSequence: ChooseEvent = (events, isAllowed, key) => {
  let chosen = events[0]!;
  for (const event of events.slice(1)) {
    if (!isAllowed(event, key, chosen)) break;
    chosen = event;
  }
  return chosen;
};

/** Chooses the last event that is allowed in the resolved state; the first event if none is. */
const latestAllowed: ChooseEvent = (events, isAllowed, key) =>
  events.findLast((event) => isAllowed(event, key, undefined)) ?? events[0]!;
