import { authorize } from '../authorization/index.ts';
import { type RoomEvent, stateMapKey } from '../event.ts';
import { createEventOf, findAuthEvent } from './auth-events.ts';
import type { StateResolutionSource } from './source.ts';
import { eachInSteps } from './steps.ts';

/**
 * Runs the iterative auth checks. For each event in order:
 * 1. Takes the state that the rules need from `state` (key to event id). What `state` lacks is taken from the
 * auth events of the event, except rejected ones.
 * 2. Puts the event into `state` if the authorization rules allow it there.
 * Source: https://spec.matrix.org/latest/rooms/v2/#definitions
 */
export function* applyAllowedEvents(
  events: readonly RoomEvent[],
  state: Map<string, string>,
  source: StateResolutionSource,
): Generator<void> {
  yield* eachInSteps(events, (event) => {
    if (event.stateKey === undefined) return;
    const { allowed } = authorize(event, (type, stateKey) => {
      const id = state.get(stateMapKey(type, stateKey));
      const current = id === undefined ? undefined : source.event(id);
      return current ?? authEventOf(event, type, stateKey, source);
    });
    if (allowed) state.set(stateMapKey(event.type, event.stateKey), event.eventId);
  });
}

function authEventOf(
  event: RoomEvent,
  type: string,
  stateKey: string,
  source: StateResolutionSource,
): RoomEvent | undefined {
  const found =
    type === 'm.room.create' ? createEventOf(event, source) : findAuthEvent(event, type, stateKey, source);
  return found === undefined || source.isRejected?.(found.eventId) ? undefined : found;
}
