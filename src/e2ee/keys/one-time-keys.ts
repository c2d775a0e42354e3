import { createHash } from 'node:crypto';
import {
  canonicalJson,
  invalidParam,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  tooLarge,
  type VerifyKey,
} from '../../protocol/index.ts';
import { coveredText, invalidSignature, isPublicKey, isSignedBy } from './signed-object.ts';

/** A parsed one-time or fallback key. */
export interface OneTimeKey {
  readonly algorithm: string;
  /** The part of the name after the algorithm. */
  readonly keyId: string;
  /** The key as JSON. */
  readonly key: string;
  /** Equal for equal keys, whatever their signatures are. */
  readonly digest: string;
}

/** The device that uploads keys. */
export interface KeyOwner {
  readonly userId: string;
  readonly deviceId: string;
  /** The Ed25519 key of the device; `undefined` until it has uploaded identity keys. */
  readonly signingKey: VerifyKey | undefined;
}

/** Maximum of characters of a key name, and of UTF-16 units of a key. A signed key has about 200. */
const [maxNameLength, maxKeyLength] = [255, 4_096];

/**
 * Parses one-time keys, `<algorithm>:<key id>` to key, and checks their signatures.
 * Source: client-server API, "Key algorithms" and "One-time and fallback keys".
 * @throws MatrixError M_INVALID_PARAM, M_INVALID_SIGNATURE, M_TOO_LARGE
 */
export function parseOneTimeKeys(keys: JsonObject, owner: KeyOwner): OneTimeKey[] {
  return Object.entries(keys).map(([name, key]) => parseKey(name, key, owner));
}

/** Parses fallback keys in the same way; there may be one for each algorithm. */
export function parseFallbackKeys(keys: JsonObject, owner: KeyOwner): OneTimeKey[] {
  const parsed = parseOneTimeKeys(keys, owner);
  const algorithms = new Set(parsed.map(({ algorithm }) => algorithm));
  if (algorithms.size < parsed.length) {
    throw invalidParam('There may be only one fallback key for each algorithm');
  }
  return parsed;
}

function parseKey(name: string, key: JsonValue | undefined, owner: KeyOwner): OneTimeKey {
  const colon = name.indexOf(':');
  const [algorithm, keyId] = [name.slice(0, colon), name.slice(colon + 1)];
  const isName = colon > 0 && keyId !== '' && name.length <= maxNameLength && !name.includes('\0');
  if (!isName) throw invalidParam('The name of a one-time key must be <algorithm>:<key id>');
  if (algorithm === 'signed_curve25519') checkSigned(name, key, owner);
  else if (algorithm === 'curve25519') {
    if (!isPublicKey(key)) throw invalidParam(`${name} is not a base64 key of 32 bytes`);
  } else if (typeof key !== 'string' && !(isJsonObject(key) && typeof key['key'] === 'string')) {
    throw invalidParam(`${name} must be a string or an object with a string "key"`);
  }
  const text = JSON.stringify(key);
  if (text.length > maxKeyLength) throw tooLarge(`${name} is too large`);
  return { algorithm, keyId, key: text, digest: digestOf(key) };
}

function checkSigned(name: string, key: JsonValue | undefined, owner: KeyOwner): void {
  if (!isJsonObject(key) || !isPublicKey(key['key']) || !isJsonObject(key['signatures'])) {
    throw invalidParam(`${name} must be an object with a key and signatures`);
  }
  const { userId, deviceId, signingKey } = owner;
  if (signingKey && !isSignedBy(key, userId, `ed25519:${deviceId}`, signingKey)) {
    throw invalidSignature(`${name}: a valid signature by the ed25519 key of the device is missing`);
  }
}

function digestOf(key: JsonValue | undefined): string {
  const text = isJsonObject(key) ? coveredText(key) : canonicalJson(key ?? null);
  return createHash('sha256').update(text).digest('base64url');
}
