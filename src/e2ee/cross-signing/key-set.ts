import type { JsonObject } from '../../protocol/index.ts';
import { VerifyKey } from '../../protocol/index.ts';
import type { KeyUsage, StoredCrossSigningKey } from '../keys/cross-signing-key-store.ts';
import {
  coveredText,
  invalidSignature,
  isSignedBy,
  signaturesBy,
  type UserSignatures,
} from '../signed-object.ts';
import type { CrossSigningKey } from './cross-signing-key.ts';

/** The stored cross-signing keys of a user. */
export type StoredKeys = ReadonlyMap<KeyUsage, StoredCrossSigningKey>;

/** Returns the uploaded keys that differ from the stored key of the same usage, or for which none is stored. */
export function newKeys(uploadedKeys: readonly CrossSigningKey[], stored: StoredKeys): CrossSigningKey[] {
  return uploadedKeys.filter(({ usage, covered }) => {
    const storedKey = stored.get(usage);
    return storedKey === undefined || coveredText(storedKey.object) !== covered;
  });
}

/**
 * Whether the upload needs authentication. The first keys of a user and repeated identical keys need none.
 * Source: client-server API, `POST /keys/device_signing/upload`.
 */
export function needsReauthentication(uploadedKeys: readonly CrossSigningKey[], stored: StoredKeys): boolean {
  return stored.has('master') && newKeys(uploadedKeys, stored).length > 0;
}

/**
 * Returns the signature of the master key on a self-signing or user-signing key.
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
    throw invalidSignature(`${key.usage}_key: a valid signature by the master key is missing`);
  }
  return pickSignatures(key.object, userId, [keyId]);
}

/**
 * Returns the signatures by the user's own devices; signatures by other keys are left out.
 * @param signingKeys by device id
 * @throws MatrixError M_INVALID_SIGNATURE when a device signature is invalid
 */
export function deviceSignatures(
  object: JsonObject,
  userId: string,
  signingKeys: ReadonlyMap<string, VerifyKey>,
): UserSignatures {
  const byDevices = Object.keys(signaturesBy(object, userId)).filter((keyId) => {
    const key = keyId.startsWith('ed25519:') ? signingKeys.get(keyId.slice('ed25519:'.length)) : undefined;
    if (key && !isSignedBy(object, userId, keyId, key)) {
      throw invalidSignature(`The signature by ${keyId} is invalid`);
    }
    return key !== undefined;
  });
  return pickSignatures(object, userId, byDevices);
}

function pickSignatures(object: JsonObject, userId: string, keyIds: readonly string[]): UserSignatures {
  const all = signaturesBy(object, userId);
  return Object.fromEntries(keyIds.map((keyId) => [keyId, all[keyId]!]));
}
