import { MatrixError } from '../errors.ts';
import type { Pdu, RoomEvent } from '../event.ts';
import { isEventId } from '../identifiers/event-ids.ts';
import { isJsonObject, type JsonValue } from '../json.ts';
import type { RoomVersion } from '../room-versions.ts';
import { CanonicalEvent } from './canonical-event.ts';
import { checkFormat, type ReferenceLimits } from './format.ts';
import { contentHash, hasContentHash, hashEventId } from './hashes.ts';
import { checkSize } from './limits.ts';
import { roomEventOf } from './room-event.ts';

/** An event from another server whose format is valid. `checkIntegrity` checks its hash and signatures. */
export interface ReceivedEvent {
  readonly event: RoomEvent;
  /** The PDU as canonical JSON, without `unsigned`. */
  readonly json: string;
  /** The text that signatures cover. */
  readonly signingInput: string;
  /** Whether the content hash matches. If not, only the redacted event may be used. */
  readonly hashMatches: boolean;
}

/**
 * Reads an event from another server: checks format, size and canonical JSON as the room version defines
 * them, and determines the event id. Parse the JSON with `numbers: 'as written'`. Drops `unsigned`.
 * Source: server-server API, "Checks performed on receipt of a PDU", check 1.
 * @param references `unlimited` if the event may have more auth and previous events than today's limits allow
 * @throws MatrixError M_BAD_JSON or M_TOO_LARGE, never anything else, whatever the JSON is.
 */
export function receivePdu(
  json: JsonValue,
  version: RoomVersion,
  references: ReferenceLimits = 'limited',
): ReceivedEvent {
  const pdu = checkFormat(json, version, references);
  const canonical = new CanonicalEvent(pdu, version);
  const text = canonical.json;
  checkSize(pdu, text, version.fieldLimits);
  const { signingInput } = canonical;
  return {
    event: roomEventOf(pdu, version, eventIdOf(pdu, signingInput, version)),
    json: text,
    signingInput,
    hashMatches: hasContentHash(pdu, contentHash(canonical)),
  };
}

/**
 * Returns the id that an event has for the server that sent it, even if the event's format is not valid. The response
 * to that server reports the failure under this id.
 * @returns `undefined` if the event has no id and none can be computed
 */
export function claimedEventId(json: JsonValue, version: RoomVersion): string | undefined {
  if (!isJsonObject(json)) return undefined;
  if (version.eventId === 'origin') return isEventId(json.event_id) ? json.event_id : undefined;
  if (typeof json.type !== 'string') return undefined;
  try {
    return hashEventId(
      new CanonicalEvent(json, { ...version, strictCanonicalJson: false }).signingInput,
      version,
    );
  } catch (error) {
    if (error instanceof MatrixError) return undefined;
    throw error;
  }
}

/** Returns the id of an event whose format is valid. Source: "Event IDs" of each room version. */
function eventIdOf(pdu: Pdu, signingInput: string, version: RoomVersion): string {
  return version.eventId === 'origin' ? (pdu.event_id as string) : hashEventId(signingInput, version);
}
