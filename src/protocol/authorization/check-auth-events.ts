import { type RoomEvent, stateMapKey } from '../event.ts';
import { selectAuthEventKeys } from './select-auth-events.ts';
import { allow, reject, type Verdict } from './verdict.ts';

/** Where the events are found that another event names in its `auth_events`. */
export interface AuthEventSource {
  /** The event with that id, rejected ones included; `undefined` if it is not known. */
  event(eventId: string): RoomEvent | undefined;
  /** Whether that event was itself rejected when it was received. */
  isRejected(eventId: string): boolean;
}

/**
 * The rules that depend only on what an event names in its `auth_events`, and so need to be checked only once:
 * rules 2 and 3 of v12, rule 2 of the versions before. `authorize` has all the others. An auth event that the
 * source does not know rejects the event: whoever calls fetches missing ones first.
 * Source: https://spec.matrix.org/latest/rooms/v12/#authorisation-rules
 */
export function checkAuthEvents(event: RoomEvent, source: AuthEventSource): Verdict {
  // 1.5: a create event has been allowed or rejected before these rules are reached.
  if (event.type === 'm.room.create') return allow();
  // 2: since v12.
  if (event.version.roomId === 'create event' && !hasAcceptedCreate(event, source)) {
    return reject('the room id does not name an accepted create event');
  }
  const selection = new Set(selectAuthEventKeys(event, event.version));
  const seen = new Set<string>();
  for (const id of event.authEventIds) {
    const authEvent = source.event(id);
    if (authEvent === undefined) return reject(`auth event ${id} is not known`);
    const objection = rejectionReason(authEvent, event, selection, seen, source);
    if (objection !== undefined) return reject(`auth event ${id} ${objection}`);
  }
  // 2.4: v1 to v11.
  if (event.version.createInAuthEvents && !seen.has(createKey)) {
    return reject('the create event is not among the auth events');
  }
  return allow();
}

const createKey = stateMapKey('m.room.create', '');

function hasAcceptedCreate(event: RoomEvent, source: AuthEventSource): boolean {
  const create = source.event(createEventIdOf(event.roomId));
  return create?.type === 'm.room.create' && !source.isRejected(create.eventId);
}

/** Since v12, the id of the create event of that room. */
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
  // 3.2, of which messages are a case.
  if (authEvent.stateKey === undefined) return 'is not a state event';
  const key = stateMapKey(authEvent.type, authEvent.stateKey);
  // 3.1
  if (seen.has(key)) return 'has the type and state key of another one';
  seen.add(key);
  // 3.2
  if (!selection.has(key)) return 'does not belong to the auth events of such an event';
  // 3.3
  if (source.isRejected(authEvent.eventId)) return 'was rejected';
  // 3.5
  if (authEvent.roomId !== event.roomId) return 'is in another room';
  return undefined;
}
