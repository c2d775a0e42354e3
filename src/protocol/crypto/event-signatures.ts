import type { RoomEvent } from '../event.ts';
import { serverOfEventId } from '../identifiers/event-ids.ts';
import { parseUserId, serverOfUser } from '../identifiers/user-ids.ts';
import { isJsonObject } from '../json.ts';
import type { VerifyKey } from './ed25519.ts';
import { signaturesOf } from './signed-json.ts';

/** A server's key with what that server says about its time. Milliseconds since the epoch. */
export interface ServerKey {
  readonly key: VerifyKey;
  /** `valid_until_ts` of the key response. */
  readonly validUntilTs: number;
  /** `expired_ts`, if the server has retired the key. */
  readonly expiredTs?: number | undefined;
}

/** Finds a server's key, or `undefined` if it is not known. */
export type ServerKeyLookup = (serverName: string, keyId: string) => ServerKey | undefined;

/** Whether a base64 signature is that of a key over a text in UTF-8. */
export type VerifySignature = (key: VerifyKey, text: string, signature: string) => boolean;

/** Verifies at once, on this thread. */
const verifySignature: VerifySignature = (key, text, signature) => key.verifies(text, signature);

/** Nobody's key is trusted for longer than this, so that a stolen one does not last. */
const MAX_KEY_LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;

/**
 * The servers whose signatures an event needs, or `undefined` if it names one that can not exist. The server of the
 * sender, except for third-party invites; up to room version 2 also that of the event id; since version 8 also
 * that of the user who let the member join.
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
 * Whether a key counts for an event of that time. A key that its server retired before does not; since room
 * version 5, neither does one that was not valid at that time, or whose validity lies over seven days ahead.
 * Source: room version 5, "Signing key validity period".
 * @param now Milliseconds since the epoch.
 */
export function isKeyValidFor(key: ServerKey, event: RoomEvent, now: number): boolean {
  if (key.expiredTs !== undefined && key.expiredTs < event.originServerTs) return false;
  if (!event.version.enforceKeyValidity || key.expiredTs !== undefined) return true;
  return event.originServerTs <= Math.min(key.validUntilTs, now + MAX_KEY_LIFETIME_MS);
}

/**
 * Whether a server has signed an event: at least one signature is from a key that is known and valid, and all such
 * are right. Never throws.
 * @param signingInput The redacted event without signatures, from `receivePdu`.
 * @param verify By default on this thread; see `checkIntegrity`.
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
