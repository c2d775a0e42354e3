import { tooLarge } from '../errors.ts';
import type { Pdu } from '../event.ts';
import { fitsBytes, fitsCodePoints } from '../identifiers/length.ts';
import type { FieldLimitUnit } from '../room-versions.ts';

/**
 * Maximum size of an event as canonical JSON, signatures included. Source: client-server API, "Size limits".
 */
export const MAX_EVENT_BYTES = 65_536;

/** Maximum length of each of `limitedFields`, in bytes or code points (`FieldLimitUnit`). */
export const MAX_FIELD_LENGTH = 255;

/** Maximum number of auth events of an event. Source: "Event format" of each room version. */
export const MAX_AUTH_EVENTS = 10;
/** Maximum number of previous events of an event. Source: "Event format" of each room version. */
export const MAX_PREV_EVENTS = 20;

const limitedFields = ['event_id', 'room_id', 'sender', 'state_key', 'type'] as const;

/**
 * Checks the size of an event and of its fields.
 * Source: client-server API, "Size limits".
 * @param json the canonical JSON of the event
 * @param unit how the lengths of fields are counted: in bytes for events that this server creates, and as the room
 * version counts them for events of other servers
 * @throws MatrixError M_TOO_LARGE
 */
export function checkSize(pdu: Pdu, json: string, unit: FieldLimitUnit): void {
  if (!fitsBytes(json, MAX_EVENT_BYTES)) throw tooLarge(`An event may have at most ${MAX_EVENT_BYTES} bytes`);
  const fits = unit === 'bytes' ? fitsBytes : fitsCodePoints;
  for (const field of limitedFields) {
    const value = pdu[field];
    if (typeof value === 'string' && !fits(value, MAX_FIELD_LENGTH)) {
      throw tooLarge(`The ${field} of an event may have at most ${MAX_FIELD_LENGTH} ${unit}`);
    }
  }
}

/**
 * Returns the name of a field of an event that has more bytes than the specification allows, whatever the room version
 * counts; `undefined` when there is none.
 * Source: client-server API, "Size limits".
 */
export function tooLongField(pdu: Pdu): string | undefined {
  return limitedFields.find((field) => {
    const value = pdu[field];
    return typeof value === 'string' && !fitsBytes(value, MAX_FIELD_LENGTH);
  });
}
