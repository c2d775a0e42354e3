import type { RoomEvent } from '../event.ts';
import { serverOfEventId } from '../identifiers/event-ids.ts';
import { parseUserId, serverOfUser } from '../identifiers/user-ids.ts';
import { isJsonObject } from '../json.ts';
import type { VerifyKey } from './ed25519.ts';
import { signaturesOf } from './signed-json.ts';

/** A server's key, and the validity that the server claims for it. Milliseconds since the epoch. */
export interface ServerKey {
  readonly key: VerifyKey;
  /** `valid_until_ts` of the key response. */
  readonly validUntilTs: number;
  /** `expired_ts`, if the server has retired the key. */
  readonly expiredTs?: number | undefined;
}

/** Returns a server's key; `undefined` if it is not known. */
export type ServerKeyLookup = (serverName: string, keyId: string) => ServerKey | undefined;

/** Whether a base64 signature by a key is valid for a text in UTF-8. */
export type VerifySignature = (key: VerifyKey, text: string, signature: string) => boolean;

/** Verifies synchronously on this thread. */
const verifySignature: VerifySignature = (key, text, signature) => key.verifies(text, signature);

/** How far ahead of the current time `valid_until_ts` counts at most, so that a stolen key does not stay usable. */
const MAX_KEY_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;

/**
 * Returns the servers that must sign an event; `undefined` if an id that names one of them is malformed.
 * - The server of the sender, except for third-party invites.
 * - Up to room version 2, also the server in the event id.
 * - Since room version 8, also the server of the user in `join_authorised_via_users_server`.
 * Source: server-server API, "Validating hashes and signatures on received events"; room version 8,
 * "Authorisation rules", 4.2.
 */
export function requiredSigners(event: RoomEvent): ReadonlySet<string> | undefined {
  const { version, content } = event;
  const signers = new Set<string>();
  if (!isThirdPartyInvite(event)) signers.add(serverOfUser(event.sender));
  if (version.signedByEventIdServer) {
    const server = serverOfEventId(event.eventId);
    if (server === undefined) return undefined;
    signers.add(server);
  }
  const authoriser = content.join_authorised_via_users_server;
  if (version.restricted && event.type === 'm.room.member' && authoriser !== undefined) {
    const parts = typeof authoriser === 'string' ? parseUserId(authoriser) : undefined;
    if (parts === undefined) return undefined;
    signers.add(parts.serverName);
  }
  return signers;
}

function isThirdPartyInvite({ type, content }: RoomEvent): boolean {
  return (
    type === 'm.room.member' && content.membership === 'invite' && isJsonObject(content.third_party_invite)
  );
}

/**
 * Whether a key is valid for an event, by the event's `origin_server_ts`. A key that its server retired is
 * valid for events up to `expired_ts`. Any other key is valid for all events up to room version 4; since room
 * version 5, only up to `valid_until_ts` and at most seven days ahead of `now`.
 * Source: room version 5, "Signing key validity period".
 * @param now milliseconds since the epoch
 */
export function isKeyValidFor(key: ServerKey, event: RoomEvent, now: number): boolean {
  if (key.expiredTs !== undefined && key.expiredTs < event.originServerTs) return false;
  if (!event.version.enforceKeyValidity || key.expiredTs !== undefined) return true;
  return event.originServerTs <= Math.min(key.validUntilTs, now + MAX_KEY_LIFETIME_MS);
}

/**
 * Whether a server has signed an event: at least one of the server's signatures is by a known and valid key, and
 * every such signature is correct. Never throws.
 * @param signingInput the redacted event without signatures, from `receivePdu`
 * @param now milliseconds since the epoch
 * @param verify verifies on this thread by default; see `checkIntegrity`
 */
export function isSignedByServer(
  event: RoomEvent,
  signingInput: string,
  serverName: string,
  keyOf: ServerKeyLookup,
  now: number,
  verify: VerifySignature = verifySignature,
): boolean {
  let found = false;
  for (const [keyId, signature] of signaturesOf(event.pdu, serverName)) {
    const key = keyOf(serverName, keyId);
    if (key === undefined || !isKeyValidFor(key, event, now)) continue;
    if (!verify(key.key, signingInput, signature)) return false;
    found = true;
  }
  return found;
}
