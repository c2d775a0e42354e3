import type { JsonObject } from '../../protocol/index.ts';
import { VerifyKey } from '../../protocol/index.ts';
import {
  coveredText,
  invalidSignature,
  isSignedBy,
  signaturesBy,
  type UserSignatures,
} from '../keys/signed-object.ts';
import type { CrossSigningKey } from './cross-signing-key.ts';
import type { KeyUsage, StoredCrossSigningKey } from './store.ts';

/** The cross-signing keys that a user has on the server. */
export type StoredKeys = ReadonlyMap<KeyUsage, StoredCrossSigningKey>;

/** Those that were sent and are not on the server already. */
export function newKeys(sent: readonly CrossSigningKey[], stored: StoredKeys): CrossSigningKey[] {
  return sent.filter(({ usage, covered }) => {
    const present = stored.get(usage);
    return present === undefined || coveredText(present.object) !== covered;
  });
}

/**
 * Whether the user has to prove who they are: not for the first keys, nor to send again what is there.
 * Source: client-server API, `POST /keys/device_signing/upload`.
 */
export function needsReauthentication(sent: readonly CrossSigningKey[], stored: StoredKeys): boolean {
  return stored.has('master') && newKeys(sent, stored).length > 0;
}

/**
 * The signature of the master key on one of the keys that hang on it.
 * @throws MatrixError M_INVALID_SIGNATURE
 */
export function masterSignature(
  key: CrossSigningKey,
  userId: string,
  masterPublicKey: string,
): UserSignatures {
  const keyId = `ed25519:${masterPublicKey}`;
  const verifyKey = VerifyKey.fromBase64(masterPublicKey);
  if (!verifyKey || !isSignedBy(key.object, userId, keyId, verifyKey)) {
    throw invalidSignature(`${key.usage}_key: this is not signed by the master key`);
  }
  return pick(key.object, userId, [keyId]);
}

/**
 * The signatures of the user's own devices on an object; those of others are left out.
 * @param signingKeys by device id
 * @throws MatrixError M_INVALID_SIGNATURE when one of them is wrong
 */
export function deviceSignatures(
  object: JsonObject,
  userId: string,
  signingKeys: ReadonlyMap<string, VerifyKey>,
): UserSignatures {
  const byDevices = Object.keys(signaturesBy(object, userId)).filter((keyId) => {
    const key = keyId.startsWith('ed25519:') ? signingKeys.get(keyId.slice('ed25519:'.length)) : undefined;
    if (key && !isSignedBy(object, userId, keyId, key)) {
      throw invalidSignature(`The signature of ${keyId} is wrong`);
    }
    return key !== undefined;
  });
  return pick(object, userId, byDevices);
}

function pick(object: JsonObject, userId: string, keyIds: readonly string[]): UserSignatures {
  const all = signaturesBy(object, userId);
  return Object.fromEntries(keyIds.map((keyId) => [keyId, all[keyId]!]));
}
