import { invalidParam, isJsonObject, type JsonObject, tooLarge, VerifyKey } from '../../protocol/index.ts';
import type { KeyUsage } from '../keys/cross-signing-key-store.ts';
import { coveredText, isPublicKey } from '../signed-object.ts';

/** A cross-signing key. Its fields were checked, but its signatures were not. */
export interface CrossSigningKey {
  readonly usage: KeyUsage;
  /** As the client sent it. */
  readonly object: JsonObject;
  /** The part of `object` that signatures cover (all but `signatures` and `unsigned`), as canonical JSON. */
  readonly covered: string;
  /** Unpadded base64; also the key id of the signatures that this key makes. */
  readonly publicKey: string;
  readonly verifyKey: VerifyKey;
}

/** Maximum number of UTF-16 units of a key. A key usually has about 200. */
const maxKeyLength = 16_384;

/**
 * Parses a cross-signing key that a user uploads.
 * Source: client-server API, `POST /keys/device_signing/upload`.
 * @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE
 */
export function parseCrossSigningKey(object: JsonObject, userId: string, usage: KeyUsage): CrossSigningKey {
  const name = `${usage}_key`;
  if (object['user_id'] !== userId) throw invalidParam(`${name}: user_id must be your user id`);
  const usages = object['usage'];
  if (!Array.isArray(usages) || !usages.includes(usage)) {
    throw invalidParam(`${name}: usage must include "${usage}"`);
  }
  const covered = coveredText(object);
  if (covered.length > maxKeyLength) throw tooLarge(`${name}: the key is too large`);
  const keys = isJsonObject(object['keys']) ? Object.entries(object['keys']) : [];
  const [keyId, publicKey] = keys[0] ?? [];
  const verifyKey = isPublicKey(publicKey) ? VerifyKey.fromBase64(publicKey) : undefined;
  if (keys.length !== 1 || !verifyKey || keyId !== `ed25519:${publicKey}`) {
    throw invalidParam(`${name}: keys must have one entry, "ed25519:<public key>": "<public key>"`);
  }
  return { usage, object, covered, publicKey: publicKey as string, verifyKey };
}
