import type { Pdu, RoomEvent } from '../event.ts';
import { numberOf } from '../json/raw-number.ts';
import type { JsonValue } from '../json.ts';
import type { RoomVersion } from '../room-versions.ts';

/**
 * Makes an event from a PDU that has been checked, for instance from a stored one. Checks and computes
 * nothing.
 * @param pdu as `receivePdu` or `buildEvent` made it
 * @param eventId the id of the event; in room versions 1 and 2 the PDU holds it too
 */
export function roomEventOf(pdu: Pdu, version: RoomVersion, eventId: string): RoomEvent {
  const isCreate = pdu.type === 'm.room.create';
  return {
    eventId,
    roomId: isCreate && version.roomId === 'create event' ? roomIdOfCreate(eventId) : String(pdu.room_id),
    type: pdu.type,
    stateKey: pdu.state_key,
    sender: pdu.sender,
    content: pdu.content,
    depth: withinSafeRange(pdu.depth),
    originServerTs: withinSafeRange(pdu.origin_server_ts),
    authEventIds: referencedIds(pdu.auth_events, version),
    prevEventIds: referencedIds(pdu.prev_events, version),
    redacts: redactsOf(pdu, version),
    version,
    pdu,
  };
}

/** Returns the id of the room that a create event begins. Source: room version 12, "Event format". */
export function roomIdOfCreate(createEventId: string): string {
  return `!${createEventId.slice(1)}`;
}

/**
 * Clamps a number to the safe range. Rooms up to version 5 may hold integers up to 2^63; for ordering, the
 * end of the safe range is exact enough.
 */
function withinSafeRange(value: number): number {
  if (Number.isSafeInteger(value)) return value;
  const number = numberOf(value as JsonValue) ?? 0;
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, number));
}

function referencedIds(references: JsonValue | undefined, version: RoomVersion): readonly string[] {
  if (version.eventReferences === 'ids') return references as readonly string[];
  return (references as readonly (readonly [string, JsonValue])[]).map(([id]) => id);
}

function redactsOf(pdu: Pdu, version: RoomVersion): string | undefined {
  if (pdu.type !== 'm.room.redaction') return undefined;
  const redacts = version.redactsIn === 'content' ? pdu.content.redacts : pdu.redacts;
  return typeof redacts === 'string' ? redacts : undefined;
}
