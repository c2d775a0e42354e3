import { badJson } from '../errors.ts';
import type { Pdu } from '../event.ts';
import { splitAtServer } from '../identifiers/domain.ts';
import { fitsCodePoints } from '../identifiers/length.ts';
import { isHashRoomId } from '../identifiers/room-ids.ts';
import { isRawNumber, numberOf } from '../json/raw-number.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { RoomVersion } from '../room-versions.ts';
import { MAX_AUTH_EVENTS, MAX_FIELD_LENGTH, MAX_PREV_EVENTS } from './limits.ts';

/**
 * Whether the number of auth and previous events of an event is limited. Old events may reference more events
 * than today's limits allow, and responses to `/backfill` must not be refused for that. Source: server-server
 * API, `GET /backfill/{roomId}`.
 */
export type ReferenceLimits = 'limited' | 'unlimited';

/** Maximum integer up to room version 5: 2^63 - 1, as closely as a double represents it. */
const MAX_OLD_INTEGER = 2 ** 63;

/**
 * Checks the fields that every event must have.
 * Source: "Event format" of each room version.
 * @param references `unlimited` if the event may have more auth and previous events than today's limits allow
 * @returns the event without `unsigned`, which no hash or signature covers; callers that need a part of `unsigned`
 * (`invite_room_state`) take that part from the received JSON and check it
 * @throws MatrixError M_BAD_JSON
 */
export function checkFormat(
  json: JsonValue,
  version: RoomVersion,
  references: ReferenceLimits = 'limited',
): Pdu {
  if (!isJsonObject(json)) throw badJson('An event must be a JSON object');
  const { unsigned: _unsigned, ...pdu } = json;
  if (typeof pdu.type !== 'string') throw badJson('The type of an event must be a string');
  if (pdu.state_key !== undefined && typeof pdu.state_key !== 'string') {
    throw badJson('The state_key of an event must be a string');
  }
  for (const key of ['content', 'hashes', 'signatures'] as const) {
    if (!isJsonObject(pdu[key])) throw badJson(`The ${key} of an event must be an object`);
  }
  checkIdentifiers(pdu, version);
  checkNumbers(pdu, version);
  const isUnlimited = references === 'unlimited';
  checkReferences(pdu, 'auth_events', isUnlimited ? Number.POSITIVE_INFINITY : MAX_AUTH_EVENTS, version);
  checkReferences(pdu, 'prev_events', isUnlimited ? Number.POSITIVE_INFINITY : MAX_PREV_EVENTS, version);
  return pdu as Pdu;
}

function checkIdentifiers(pdu: JsonObject, version: RoomVersion): void {
  if (!hasDomain(pdu.sender, '@')) throw badJson('The sender of an event must be a user id');
  if (version.eventId === 'origin' && !hasDomain(pdu.event_id, '$')) {
    throw badJson('The event_id of an event must be an event id with a domain');
  }
  if (version.roomId === 'origin') {
    if (!hasDomain(pdu.room_id, '!'))
      throw badJson('The room_id of an event must be a room id with a domain');
  } else if (pdu.type !== 'm.room.create' && !isHashRoomId(pdu.room_id)) {
    throw badJson('The room_id of an event must be the hash of the create event');
  }
}

function hasDomain(value: JsonValue | undefined, sigil: string): boolean {
  return typeof value === 'string' && splitAtServer(value, sigil) !== undefined;
}

function checkNumbers(pdu: JsonObject, version: RoomVersion): void {
  const depth = integerOf(pdu.depth, version);
  if (depth === undefined || depth < 0)
    throw badJson('The depth of an event must be an integer of at least 0');
  if (integerOf(pdu.origin_server_ts, version) === undefined) {
    throw badJson('The origin_server_ts of an event must be an integer');
  }
}

function integerOf(value: JsonValue | undefined, version: RoomVersion): number | undefined {
  if (Number.isSafeInteger(value)) return value as number;
  const number = numberOf(value);
  if (version.strictCanonicalJson || number === undefined || Math.abs(number) > MAX_OLD_INTEGER)
    return undefined;
  const written = isRawNumber(value) ? value.rawJSON : String(number);
  return /^-?\d+$/.test(written) ? number : undefined;
}

function checkReferences(
  pdu: JsonObject,
  key: 'auth_events' | 'prev_events',
  max: number,
  version: RoomVersion,
): void {
  const references = pdu[key];
  if (!Array.isArray(references)) throw badJson(`The ${key} of an event must be an array`);
  if (references.length > max) throw badJson(`An event may have at most ${max} ${key}`);
  const areIds = version.eventReferences === 'ids';
  if (!references.every(areIds ? isId : isPair)) {
    throw badJson(
      `Each of the ${key} of an event must be ${areIds ? 'an event id' : 'a pair of event id and hashes'}`,
    );
  }
}

function isId(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith('$') && fitsCodePoints(value, MAX_FIELD_LENGTH);
}

function isPair(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && isId(value[0]);
}
