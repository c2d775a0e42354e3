import { invalidParam, isJsonObject, type JsonObject, tooLarge, VerifyKey } from '../../protocol/index.ts';
import { coveredText, isPublicKey } from '../keys/signed-object.ts';
import type { KeyUsage } from './store.ts';

/** A cross-signing key, checked but for its signatures. */
export interface CrossSigningKey {
  readonly usage: KeyUsage;
  /** As the client sent it. */
  readonly object: JsonObject;
  /** Everything but the signatures, as canonical JSON. */
  readonly covered: string;
  /** Unpadded base64; also the id under which the key signs. */
  readonly publicKey: string;
  readonly verifyKey: VerifyKey;
}

/** UTF-16 units of a key; real ones have about 200. */
const largestKey = 16_384;

/**
 * Checks a key that a user uploads for themself.
 * Source: client-server API, `POST /keys/device_signing/upload`.
 * @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE
 */
export function parseCrossSigningKey(object: JsonObject, userId: string, usage: KeyUsage): CrossSigningKey {
  const name = `${usage}_key`;
  if (object['user_id'] !== userId) throw invalidParam(`${name}: this is not your user id`);
  const usages = object['usage'];
  if (!Array.isArray(usages) || !usages.includes(usage)) {
    throw invalidParam(`${name}: the usage must be ${usage}`);
  }
  const covered = coveredText(object);
  if (covered.length > largestKey) throw tooLarge(`${name}: this is too large`);
  const keys = isJsonObject(object['keys']) ? Object.entries(object['keys']) : [];
  const [keyId, publicKey] = keys[0] ?? [];
  const verifyKey = isPublicKey(publicKey) ? VerifyKey.fromBase64(publicKey) : undefined;
  if (keys.length !== 1 || !verifyKey || keyId !== `ed25519:${publicKey}`) {
    throw invalidParam(`${name}: there must be one key, named ed25519:<the key>`);
  }
  return { usage, object, covered, publicKey: publicKey as string, verifyKey };
}
