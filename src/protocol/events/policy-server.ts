import { VerifyKey } from '../crypto/ed25519.ts';
import { signaturesOf, withSignature } from '../crypto/signed-json.ts';
import type { Pdu, RoomEvent } from '../event.ts';
import { isServerName } from '../identifiers/server-names.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import type { BuiltEvent } from './build.ts';
import { CanonicalEvent } from './canonical-event.ts';
import { checkSize } from './limits.ts';
import { roomEventOf } from './room-event.ts';

/** A policy server, which decides what events a room accepts, and its public key. */
export interface PolicyServer {
  readonly serverName: string;
  readonly key: VerifyKey;
}

/** The type of the state event that names a room's policy server; its state key is empty. */
export const policyEventType = 'm.room.policy';

/**
 * The key id of every policy server's signatures. Source: server-server API, "Validating Policy Server
 * signatures".
 */
export const policyKeyId = 'ed25519:policy_server';

/**
 * Returns the policy server that the content of `m.room.policy` names; `undefined` if it names none with a valid
 * server name and key.
 * Source: server-server API, "Determining if a Policy Server is enabled in a room".
 */
export function parsePolicyServer({ via, public_keys: keys }: JsonObject): PolicyServer | undefined {
  if (!isServerName(via) || !isJsonObject(keys) || typeof keys.ed25519 !== 'string') return undefined;
  const key = VerifyKey.fromBase64(keys.ed25519);
  return key && { serverName: via, key };
}

/** Whether a policy server must sign an event: every event except `m.room.policy` with the empty state key. */
export function needsPolicyServerSignature({
  type,
  stateKey,
}: {
  type: string;
  stateKey?: string | undefined;
}): boolean {
  return type !== policyEventType || stateKey !== '';
}

/**
 * Whether the policy server has signed the event. Never throws. Source: server-server API, "Validating Policy
 * Server signatures".
 */
export function isSignedByPolicyServer({ pdu, version }: RoomEvent, policy: PolicyServer): boolean {
  const found = signaturesOf(pdu, policy.serverName).find(([keyId]) => keyId === policyKeyId);
  if (!found) return false;
  try {
    return policy.key.verifies(new CanonicalEvent(pdu, version).signingInput, found[1]);
  } catch {
    return false;
  }
}

/**
 * Adds a policy server's signature to an event. Keeps all other signatures, also those of the same server with other
 * keys.
 * @throws MatrixError M_TOO_LARGE
 */
export function withPolicySignature(
  { pdu, version, eventId }: RoomEvent,
  { serverName }: PolicyServer,
  signature: string,
): BuiltEvent {
  const canonical = new CanonicalEvent(pdu, version);
  const signatures = withSignature(pdu.signatures, serverName, policyKeyId, signature);
  canonical.signatures = signatures;
  const signed: Pdu = { ...pdu, signatures };
  const json = canonical.json;
  checkSize(signed, json, version.fieldLimits);
  return { event: roomEventOf(signed, version, eventId), json };
}
