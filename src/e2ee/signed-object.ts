import {
  canonicalJson,
  decodeBase64,
  isJsonObject,
  type JsonObject,
  MatrixError,
  type VerifyKey,
  verifyJson,
} from '../protocol/index.ts';

/** The signatures of one user on an object: key id to signature. */
export type UserSignatures = Readonly<Record<string, string>>;

export const invalidSignature = (message: string) => new MatrixError(400, 'M_INVALID_SIGNATURE', message);

/**
 * Returns the part of an object that its signatures cover, as canonical JSON. Two objects with the same text
 * differ only in signatures and `unsigned`.
 */
export function coveredText(object: JsonObject): string {
  const { signatures: _signatures, unsigned: _unsigned, ...covered } = object;
  return canonicalJson(covered, 'as written');
}

/** Returns a user's signatures of an object. Entries that are not strings are left out. */
export function signaturesBy(object: JsonObject, userId: string): UserSignatures {
  const { signatures } = object;
  if (!isJsonObject(signatures) || !Object.hasOwn(signatures, userId)) return {};
  const signaturesOfUser = signatures[userId];
  if (!isJsonObject(signaturesOfUser)) return {};
  return Object.fromEntries(
    Object.entries(signaturesOfUser).filter((entry) => typeof entry[1] === 'string'),
  ) as UserSignatures;
}

/** Reports whether the object has a valid signature by the user's key with the given id. */
export function isSignedBy(object: JsonObject, userId: string, keyId: string, key: VerifyKey): boolean {
  return verifyJson(object, userId, (id) => (id === keyId ? key : undefined));
}

/**
 * Returns the object with only the given signatures of a user, and without `unsigned`. When no signatures are given, an
 * object without the member `signatures` does not get one.
 */
export function withSignatures(object: JsonObject, userId: string, signatures: UserSignatures): JsonObject {
  const { signatures: previousSignatures, unsigned: _unsigned, ...covered } = object;
  if (Object.keys(signatures).length > 0) return { ...covered, signatures: { [userId]: signatures } };
  return previousSignatures === undefined ? covered : { ...covered, signatures: {} };
}

/** Reports whether text is base64 for 32 bytes, the length of Curve25519 and Ed25519 keys. */
export function isPublicKey(text: unknown): text is string {
  return typeof text === 'string' && decodeBase64(text)?.length === 32;
}
