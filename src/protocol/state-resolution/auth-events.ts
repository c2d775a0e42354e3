import { createEventIdOf } from '../authorization/index.ts';
import type { RoomEvent } from '../event.ts';
import type { StateResolutionSource } from './source.ts';

/** Returns the event with that type and state key among the auth events of an event; `undefined` if there is none. */
export function findAuthEvent(
  event: RoomEvent,
  type: string,
  stateKey: string,
  source: StateResolutionSource,
): RoomEvent | undefined {
  for (const id of event.authEventIds) {
    const authEvent = source.event(id);
    if (authEvent?.type === type && authEvent.stateKey === stateKey) return authEvent;
  }
  return undefined;
}

/** Returns the power levels event among the auth events of an event. */
export function powerLevelsEventOf(event: RoomEvent, source: StateResolutionSource): RoomEvent | undefined {
  return findAuthEvent(event, 'm.room.power_levels', '', source);
}

/** Returns the create event that an event references: among its auth events, or by its room id since v12. */
export function createEventOf(event: RoomEvent, source: StateResolutionSource): RoomEvent | undefined {
  if (event.type === 'm.room.create') return event;
  if (event.version.createInAuthEvents) return findAuthEvent(event, 'm.room.create', '', source);
  return source.event(createEventIdOf(event.roomId));
}
