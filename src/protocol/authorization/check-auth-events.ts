import { type RoomEvent, stateMapKey } from '../event.ts';
import { selectAuthEventKeys } from './select-auth-events.ts';
import { allow, reject, type Verdict } from './verdict.ts';

/** Looks up the events that another event references in its `auth_events`. */
export interface AuthEventSource {
  /** Returns the event with that id, also a rejected one; `undefined` if it is not known. */
  event(eventId: string): RoomEvent | undefined;
  /** Whether that event was rejected when it was received. */
  isRejected(eventId: string): boolean;
}

/**
 * Applies the rules that depend only on an event and its `auth_events`. They need to be checked only once for each
 * event. `authorize` applies all other rules. The rules have their numbers in room version 12 (v12), and in parentheses
 * those in v1 where they differ:
 * - 2: the room id names an accepted create event (since v12).
 * - 3.1 (v1 2.1): no two auth events have the same type and state key.
 * - 3.2 (v1 2.2): each auth event is in the selection of `selectAuthEventKeys`.
 * - 3.3 (v1 2.3): no auth event was rejected.
 * - v1 2.4: the create event is one of the auth events (v1 to v11).
 * - 3.5 (v1 2.5): each auth event is in the same room.
 *
 * An auth event that the source does not know rejects the event, so the caller fetches missing auth events first.
 * Source: https://spec.matrix.org/latest/rooms/v12/#authorisation-rules
 */
export function checkAuthEvents(event: RoomEvent, source: AuthEventSource): Verdict {
  // 1.5: create events are decided on before these rules are reached.
  if (event.type === 'm.room.create') return allow();
  // 2: since v12.
  if (event.version.roomId === 'create event' && !hasAcceptedCreate(event, source)) {
    return reject('The room id does not name an accepted create event');
  }
  const selection = new Set(selectAuthEventKeys(event, event.version));
  const seen = new Set<string>();
  for (const id of event.authEventIds) {
    const authEvent = source.event(id);
    if (authEvent === undefined) return reject(`Auth event ${id} is not known`);
    const reason = rejectionReason(authEvent, event, selection, seen, source);
    if (reason !== undefined) return reject(`Auth event ${id} ${reason}`);
  }
  // v1 2.4: v1 to v11.
  if (event.version.createInAuthEvents && !seen.has(createKey)) {
    return reject('The create event is not among the auth events');
  }
  return allow();
}

const createKey = stateMapKey('m.room.create', '');

function hasAcceptedCreate(event: RoomEvent, source: AuthEventSource): boolean {
  const create = source.event(createEventIdOf(event.roomId));
  return create?.type === 'm.room.create' && !source.isRejected(create.eventId);
}

/** Returns the id of the create event that a room id names, since v12. */
export function createEventIdOf(roomId: string): string {
  return `$${roomId.slice(1)}`;
}

function rejectionReason(
  authEvent: RoomEvent,
  event: RoomEvent,
  selection: ReadonlySet<string>,
  seen: Set<string>,
  source: AuthEventSource,
): string | undefined {
  // 3.2: messages are never in the selection.
  if (authEvent.stateKey === undefined) return 'is not a state event';
  const key = stateMapKey(authEvent.type, authEvent.stateKey);
  // 3.1
  if (seen.has(key)) return 'has the same type and state key as another one';
  seen.add(key);
  // 3.2
  if (!selection.has(key)) return 'is not one that such an event may reference';
  // 3.3
  if (source.isRejected(authEvent.eventId)) return 'was rejected';
  // 3.5
  if (authEvent.roomId !== event.roomId) return 'is in another room';
  return undefined;
}
