import { type JsonObject, notFound, VerifyKey } from '../../protocol/index.ts';
import { coveredText, invalidSignature, isSignedBy, signaturesBy } from '../keys/signed-object.ts';
import { deviceSignatures, type StoredKeys } from './key-set.ts';

/** What a user has on the server, to check what they have signed. */
export interface Signer {
  readonly userId: string;
  readonly crossSigning: StoredKeys;
  /** The identity keys of their devices. */
  readonly devices: ReadonlyMap<string, JsonObject>;
  /** What their devices sign with. */
  readonly signingKeys: ReadonlyMap<string, VerifyKey>;
}

/** Signatures that are right, and what they are on. */
export interface CheckedSignatures {
  readonly kind: 'device' | 'master' | 'user';
  readonly targetUserId: string;
  /** A device id or a master key. */
  readonly targetKey: string;
  /** What was signed, as canonical JSON. */
  readonly covered: string;
  readonly signatures: Readonly<Record<string, string>>;
}

/**
 * Checks what a user has signed of their own: a device, with the self-signing key; or the master key, with devices.
 * @throws MatrixError M_NOT_FOUND, M_INVALID_SIGNATURE, M_BAD_JSON
 */
export function checkOwnSignatures(signer: Signer, targetKey: string, object: JsonObject): CheckedSignatures {
  const { userId, crossSigning, devices, signingKeys } = signer;
  const device = devices.get(targetKey);
  const target = { targetUserId: userId, targetKey };
  if (device) {
    const covered = checkSame(object, device);
    const signatures = signatureBy(object, userId, crossSigning.get('self_signing')?.publicKey);
    return { kind: 'device', ...target, covered, signatures };
  }
  const master = crossSigning.get('master');
  if (master?.publicKey !== targetKey) throw notFound('You have no such device or master key');
  const covered = checkSame(object, master.object);
  const signatures = deviceSignatures(object, userId, signingKeys);
  if (Object.keys(signatures).length === 0) throw invalidSignature('None of your devices has signed this');
  return { kind: 'master', ...target, covered, signatures };
}

/**
 * Checks what a user has signed of another: the master key, with the user-signing key.
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
    throw notFound('This is not the master key of that user');
  }
  const covered = checkSame(object, master);
  const signatures = signatureBy(object, userId, crossSigning.get('user_signing')?.publicKey);
  return { kind: 'user', targetUserId, targetKey, covered, signatures };
}

function checkSame(object: JsonObject, stored: JsonObject): string {
  const covered = coveredText(object);
  if (covered !== coveredText(stored)) throw invalidSignature('This is not the key that the server knows');
  return covered;
}

function signatureBy(
  object: JsonObject,
  userId: string,
  publicKey: string | undefined,
): Record<string, string> {
  const key = publicKey === undefined ? undefined : VerifyKey.fromBase64(publicKey);
  if (!key) throw notFound('You have no key to sign this with');
  const keyId = `ed25519:${publicKey}`;
  if (!isSignedBy(object, userId, keyId, key)) throw invalidSignature(`This is not signed by ${keyId}`);
  return { [keyId]: signaturesBy(object, userId)[keyId]! };
}
