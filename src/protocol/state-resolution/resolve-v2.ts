import { type RoomEvent, type StateMap, stateMapKey } from '../event.ts';
import { authChainDifference, conflictedSubgraph } from './auth-chains.ts';
import { type Conflicts, findConflicts } from './conflicts.ts';
import { applyAllowedEvents } from './iterative-auth-checks.ts';
import { mainlineOrder } from './mainline-order.ts';
import { reverseTopologicalPowerOrder } from './power-order.ts';
import type { StateResolutionSource } from './source.ts';

/** The differences of v2.1, the algorithm of room version 12, from v2, which came with room version 2. */
export interface ResolutionRules {
  /** Whether step 2 starts from an empty state instead of the unconflicted state map. */
  readonly startsEmpty: boolean;
  /** Whether the full conflicted set includes the conflicted state subgraph. */
  readonly withSubgraph: boolean;
}

/**
 * Resolves state by algorithm v2 or v2.1, in the steps of the specification:
 * 1. Takes the power events of the full conflicted set, and those events of their auth chains that are in that set.
 *    Sorts them in reverse topological power order.
 * 2. Applies the iterative auth checks to the sorted events, beginning with the unconflicted state map (v2.1: with an
 *    empty state).
 * 3. Sorts the other events of the full conflicted set in mainline order, based on the power levels of step 2.
 * 4. Applies the iterative auth checks to these other events.
 * 5. Overwrites the result with the unconflicted state map.
 * Source: https://spec.matrix.org/latest/rooms/v2/#state-resolution,
 * https://spec.matrix.org/latest/rooms/v12/#state-resolution
 */
export function* resolveV2(
  stateSets: readonly StateMap<string>[],
  source: StateResolutionSource,
  rules: ResolutionRules,
): Generator<void, StateMap<string>> {
  const conflicts = findConflicts(stateSets);
  if (conflicts.conflicted.size === 0) return conflicts.unconflicted;
  yield;
  const conflicted = fullConflictedSet(stateSets, conflicts, source, rules);
  yield;
  // 1
  const powerEvents = yield* reverseTopologicalPowerOrder(powerEventsWithAuthChains(conflicted), source);
  // 2
  const state = rules.startsEmpty ? new Map<string, string>() : new Map(conflicts.unconflicted);
  yield* applyAllowedEvents(powerEvents, state, source);
  // 3
  for (const event of powerEvents) conflicted.delete(event.eventId);
  const powerLevels = state.get(stateMapKey('m.room.power_levels', ''));
  const others = yield* mainlineOrder(
    [...conflicted.values()],
    powerLevels === undefined ? undefined : source.event(powerLevels),
    source,
  );
  // 4
  yield* applyAllowedEvents(others, state, source);
  // 5
  for (const [key, id] of conflicts.unconflicted) state.set(key, id);
  return state;
}

/**
 * Returns the full conflicted set, event id to event. Leaves out events that the source does not know, which
 * cannot be checked.
 */
function fullConflictedSet(
  stateSets: readonly StateMap<string>[],
  { conflicted }: Conflicts,
  source: StateResolutionSource,
  rules: ResolutionRules,
): Map<string, RoomEvent> {
  const events = new Map<string, RoomEvent>();
  const add = (ids: Iterable<string>): void => {
    for (const id of ids) {
      const event = source.event(id);
      if (event !== undefined) events.set(id, event);
    }
  };
  add(conflicted);
  const sets = stateSets.map((set) => new Set(set.values()));
  add(source.authChainDifference?.(sets) ?? authChainDifference(sets, source));
  if (rules.withSubgraph) {
    add(source.conflictedSubgraph?.(conflicted) ?? conflictedSubgraph(conflicted, source));
  }
  return events;
}

/**
 * Returns the power events among the conflicted events, and the conflicted events in their auth chains. Follows a
 * chain only as long as its events are conflicted, so that it need not walk whole auth chains. Since room version 12
 * this finds all of these events, because every event between two conflicted events is in the subgraph. In algorithm v2
 * it may miss some, but other servers read step 1 in the same way.
 */
function powerEventsWithAuthChains(conflicted: ReadonlyMap<string, RoomEvent>): RoomEvent[] {
  const selected = new Set<RoomEvent>();
  const pending = [...conflicted.values()].filter(isPowerEvent);
  for (let event = pending.pop(); event !== undefined; event = pending.pop()) {
    if (selected.has(event)) continue;
    selected.add(event);
    for (const id of event.authEventIds) {
      const authEvent = conflicted.get(id);
      if (authEvent !== undefined) pending.push(authEvent);
    }
  }
  return [...selected];
}

/**
 * Whether an event is a power event: it may take away a user's ability to do something in the room. Power
 * levels and join rules count only with an empty state key.
 */
function isPowerEvent({ type, stateKey, sender, content }: RoomEvent): boolean {
  if (type === 'm.room.power_levels' || type === 'm.room.join_rules') return stateKey === '';
  if (type !== 'm.room.member' || stateKey === undefined || sender === stateKey) return false;
  return content['membership'] === 'leave' || content['membership'] === 'ban';
}
