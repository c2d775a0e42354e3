import { type JsonObject, notFound, VerifyKey } from '../../protocol/index.ts';
import { coveredText, invalidSignature, isSignedBy, signaturesBy } from '../signed-object.ts';
import { deviceSignatures, type StoredKeys } from './key-set.ts';

/** The stored keys of a user who uploads signatures. */
export interface Signer {
  readonly userId: string;
  readonly crossSigning: StoredKeys;
  /** The uploaded objects `device_keys` by device id. */
  readonly devices: ReadonlyMap<string, JsonObject>;
  /** Ed25519 keys by device id. */
  readonly signingKeys: ReadonlyMap<string, VerifyKey>;
}

/** Valid signatures, and the object that they sign. */
export interface CheckedSignatures {
  /** What is signed: a device of the signer, the signer's master key, or the master key of another user. */
  readonly kind: 'device' | 'master' | 'user';
  readonly targetUserId: string;
  /** A device id or a master key. */
  readonly targetKey: string;
  /** The signed content as canonical JSON. */
  readonly covered: string;
  readonly signatures: Readonly<Record<string, string>>;
}

/**
 * Checks signatures of a user's own keys: a signature of a device by the self-signing key, or signatures of the master
 * key by devices.
 * @throws MatrixError M_NOT_FOUND, M_INVALID_SIGNATURE, M_BAD_JSON
 */
export function checkOwnSignatures(signer: Signer, targetKey: string, object: JsonObject): CheckedSignatures {
  const { userId, crossSigning, devices, signingKeys } = signer;
  const device = devices.get(targetKey);
  const target = { targetUserId: userId, targetKey };
  if (device) {
    const covered = checkEqualsStored(object, device);
    const signatures = signatureBy(object, userId, crossSigning.get('self_signing')?.publicKey);
    return { kind: 'device', ...target, covered, signatures };
  }
  const master = crossSigning.get('master');
  if (master?.publicKey !== targetKey) throw notFound('You have no device or master key with this id');
  const covered = checkEqualsStored(object, master.object);
  const signatures = deviceSignatures(object, userId, signingKeys);
  if (Object.keys(signatures).length === 0)
    throw invalidSignature('There is no valid signature by one of your devices');
  return { kind: 'master', ...target, covered, signatures };
}

/**
 * Checks the signature that the signer's user-signing key made on another user's master key.
 * @param master the other user's master key
 * @throws MatrixError M_NOT_FOUND, M_INVALID_SIGNATURE, M_BAD_JSON
 */
export function checkOtherUserSignature(
  { userId, crossSigning }: Signer,
  { targetUserId, targetKey }: { targetUserId: string; targetKey: string },
  object: JsonObject,
  master: JsonObject | undefined,
): CheckedSignatures {
  const keys = master?.['keys'] as JsonObject | undefined;
  if (!master || keys?.[`ed25519:${targetKey}`] !== targetKey) {
    throw notFound('This is not the current master key of the user');
  }
  const covered = checkEqualsStored(object, master);
  const signatures = signatureBy(object, userId, crossSigning.get('user_signing')?.publicKey);
  return { kind: 'user', targetUserId, targetKey, covered, signatures };
}

function checkEqualsStored(object: JsonObject, stored: JsonObject): string {
  const covered = coveredText(object);
  if (covered !== coveredText(stored))
    throw invalidSignature('The signed object differs from the stored key');
  return covered;
}

function signatureBy(
  object: JsonObject,
  userId: string,
  publicKey: string | undefined,
): Record<string, string> {
  const key = publicKey === undefined ? undefined : VerifyKey.fromBase64(publicKey);
  if (!key) throw notFound('You have not uploaded the cross-signing key for this signature');
  const keyId = `ed25519:${publicKey}`;
  if (!isSignedBy(object, userId, keyId, key))
    throw invalidSignature(`A valid signature by ${keyId} is missing`);
  return { [keyId]: signaturesBy(object, userId)[keyId]! };
}
