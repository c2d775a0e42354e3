import { tooLarge } from '../errors.ts';
import type { Pdu } from '../event.ts';
import { fitsBytes, fitsCodePoints } from '../identifiers/length.ts';
import type { RoomVersion } from '../room-versions.ts';

/** Of a whole event as canonical JSON, signatures included. Source: client-server API, "Size limits". */
export const MAX_EVENT_BYTES = 65_536;

const MAX_FIELD = 255;

/** Source: "Event format" of each room version. */
export const MAX_AUTH_EVENTS = 10;
export const MAX_PREV_EVENTS = 20;

const limitedFields = ['event_id', 'room_id', 'sender', 'state_key', 'type'] as const;

/**
 * Source: client-server API, "Size limits".
 * @param json The canonical JSON of the event.
 * @throws MatrixError M_TOO_LARGE
 */
export function checkSize(pdu: Pdu, json: string, version: RoomVersion): void {
  if (!fitsBytes(json, MAX_EVENT_BYTES)) throw tooLarge(`An event may have ${MAX_EVENT_BYTES} bytes at most`);
  const fits = version.fieldLimits === 'bytes' ? fitsBytes : fitsCodePoints;
  for (const field of limitedFields) {
    const value = pdu[field];
    if (typeof value === 'string' && !fits(value, MAX_FIELD)) {
      throw tooLarge(`The ${field} of an event may have ${MAX_FIELD} ${version.fieldLimits} at most`);
    }
  }
}
