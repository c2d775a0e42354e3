import { decodeBase64, encodeBase64 } from '../crypto/base64.ts';
import { sha256Base64, sha256Base64Url } from '../crypto/sha256.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import type { RoomVersion } from '../room-versions.ts';
import { CanonicalEvent } from './canonical-event.ts';

/**
 * Covers the whole event; stands in its `hashes.sha256`. Unpadded base64.
 * Source: server-server API, "Calculating the content hash for an event".
 */
export function contentHash(event: CanonicalEvent): string {
  return sha256Base64(event.contentHashInput);
}

/**
 * Whether `hashes.sha256` of an event is the given hash (unpadded base64), however it is written: what counts is the
 * bytes.
 */
export function hasContentHash(pdu: JsonObject, expected: string): boolean {
  const claimed = isJsonObject(pdu.hashes) ? pdu.hashes.sha256 : undefined;
  if (claimed === expected) return true;
  const bytes = typeof claimed === 'string' ? decodeBase64(claimed) : undefined;
  return bytes !== undefined && encodeBase64(bytes) === expected;
}

/**
 * Covers what redaction leaves of the event, so that it stays the same when the event is redacted. Unpadded base64.
 * Source: server-server API, "Calculating the reference hash for an event".
 * @throws MatrixError M_BAD_JSON if the event is not canonical JSON as its room version demands.
 */
export function referenceHash(pdu: JsonObject, version: RoomVersion): string {
  return sha256Base64(new CanonicalEvent(pdu, version).signingInput);
}

/**
 * The event id that the reference hash makes; for room versions 1 and 2, use the event's own `event_id`.
 * @param signingInput The text of the redacted event without signatures.
 */
export function hashEventId(signingInput: string, version: RoomVersion): string {
  return `$${version.eventId === 'hash, base64' ? sha256Base64(signingInput) : sha256Base64Url(signingInput)}`;
}
