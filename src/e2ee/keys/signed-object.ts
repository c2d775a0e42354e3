import {
  canonicalJson,
  decodeBase64,
  isJsonObject,
  type JsonObject,
  MatrixError,
  type VerifyKey,
  verifyJson,
} from '../../protocol/index.ts';

/** The signatures of one user on an object: key id to signature. */
export type UserSignatures = Readonly<Record<string, string>>;

export const invalidSignature = (message: string) => new MatrixError(400, 'M_INVALID_SIGNATURE', message);

/** What signatures cover, as canonical JSON: two objects with the same text differ in their signatures only. */
export function coveredText(object: JsonObject): string {
  const { signatures: _signatures, unsigned: _unsigned, ...covered } = object;
  return canonicalJson(covered, 'as written');
}

/** The signatures that a user has made on an object; what is no signature is left out. */
export function signaturesBy(object: JsonObject, userId: string): UserSignatures {
  const { signatures } = object;
  if (!isJsonObject(signatures) || !Object.hasOwn(signatures, userId)) return {};
  const own = signatures[userId];
  if (!isJsonObject(own)) return {};
  return Object.fromEntries(
    Object.entries(own).filter((entry) => typeof entry[1] === 'string'),
  ) as UserSignatures;
}

/** Whether a user's key of that id has signed the object. */
export function isSignedBy(object: JsonObject, userId: string, keyId: string, key: VerifyKey): boolean {
  return verifyJson(object, userId, (id) => (id === keyId ? key : undefined));
}

/** The object with these signatures of a user instead of all that it had, and without `unsigned`. */
export function withSignatures(object: JsonObject, userId: string, signatures: UserSignatures): JsonObject {
  const { signatures: _signatures, unsigned: _unsigned, ...covered } = object;
  return { ...covered, signatures: { [userId]: signatures } };
}

/** Whether text is the base64 of the 32 bytes that Curve25519 and Ed25519 keys have. */
export function isPublicKey(text: unknown): text is string {
  return typeof text === 'string' && decodeBase64(text)?.length === 32;
}
