import { decodeBase64, encodeBase64 } from '../crypto/base64.ts';
import { sha256Base64, sha256Base64Url } from '../crypto/sha256.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import type { RoomVersion } from '../room-versions.ts';
import { CanonicalEvent } from './canonical-event.ts';

/**
 * Returns the content hash of an event, for its `hashes.sha256`, in unpadded base64. Unlike the reference hash, it
 * also covers what a redaction removes, but not `hashes`, `signatures` and `unsigned`.
 * Source: server-server API, "Calculating the content hash for an event".
 */
export function contentHash(event: CanonicalEvent): string {
  return sha256Base64(event.contentHashInput);
}

/**
 * Whether `hashes.sha256` of an event equals the given hash (unpadded base64). Compares bytes, so padding and
 * alphabet do not matter.
 */
export function hasContentHash(pdu: JsonObject, expected: string): boolean {
  const claimed = isJsonObject(pdu.hashes) ? pdu.hashes.sha256 : undefined;
  if (claimed === expected) return true;
  const bytes = typeof claimed === 'string' ? decodeBase64(claimed) : undefined;
  return bytes !== undefined && encodeBase64(bytes) === expected;
}

/**
 * Returns the reference hash of an event. It covers the redacted event, so that redacting the event does not
 * change it. Unpadded base64.
 * Source: server-server API, "Calculating the reference hash for an event".
 * @throws MatrixError M_BAD_JSON if the event is not canonical JSON as its room version demands.
 */
export function referenceHash(pdu: JsonObject, version: RoomVersion): string {
  return sha256Base64(new CanonicalEvent(pdu, version).signingInput);
}

/**
 * Returns the event id made from the reference hash. In room versions 1 and 2, use the event's own `event_id`
 * instead.
 * @param signingInput the text of the redacted event without signatures
 */
export function hashEventId(signingInput: string, version: RoomVersion): string {
  return `$${version.eventId === 'hash, base64' ? sha256Base64(signingInput) : sha256Base64Url(signingInput)}`;
}
