import { VerifyKey } from '../crypto/ed25519.ts';
import { signaturesOf, withSignature } from '../crypto/signed-json.ts';
import type { Pdu, RoomEvent } from '../event.ts';
import { isServerName } from '../identifiers/server-names.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import type { BuiltEvent } from './build.ts';
import { CanonicalEvent } from './canonical-event.ts';
import { checkSize } from './limits.ts';
import { roomEventOf } from './room-event.ts';

/** A server that says which events a room should have, and the key with which it does. */
export interface PolicyServer {
  readonly serverName: string;
  readonly key: VerifyKey;
}

/** The type of the state event that names a room's policy server; its state key is empty. */
export const policyEventType = 'm.room.policy';

/** The id under which a policy server signs, always. Source: server-server API, "Validating Policy Server signatures". */
export const policyKeyId = 'ed25519:policy_server';

/**
 * The policy server that the content of `m.room.policy` names; `undefined` when it names none.
 * Source: server-server API, "Determining if a Policy Server is enabled in a room".
 */
export function parsePolicyServer({ via, public_keys: keys }: JsonObject): PolicyServer | undefined {
  if (!isServerName(via) || !isJsonObject(keys) || typeof keys.ed25519 !== 'string') return undefined;
  const key = VerifyKey.fromBase64(keys.ed25519);
  return key && { serverName: via, key };
}

/** Whether policy servers are asked about events like this one: about all but the one that names them. */
export function needsPolicyServerSignature({
  type,
  stateKey,
}: {
  type: string;
  stateKey?: string | undefined;
}): boolean {
  return type !== policyEventType || stateKey !== '';
}

/** Never throws. Source: server-server API, "Validating Policy Server signatures". */
export function isSignedByPolicyServer({ pdu, version }: RoomEvent, policy: PolicyServer): boolean {
  const own = signaturesOf(pdu, policy.serverName).find(([keyId]) => keyId === policyKeyId);
  if (!own) return false;
  try {
    return policy.key.verifies(new CanonicalEvent(pdu, version).signingInput, own[1]);
  } catch {
    return false;
  }
}

/**
 * The event with the signature of a policy server; those that it has stay, the server's own others too.
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
  checkSize(signed, json, version);
  return { event: roomEventOf(signed, version, eventId), json };
}
