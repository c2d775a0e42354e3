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

/** A one-time or fallback key, checked. */
export interface OneTimeKey {
  readonly algorithm: string;
  /** The part of the name behind the algorithm. */
  readonly keyId: string;
  /** As JSON. */
  readonly key: string;
  /** Two keys are the same when their digests are. */
  readonly digest: string;
}

/** Whose keys they are. */
export interface KeyOwner {
  readonly userId: string;
  readonly deviceId: string;
  /** What the device signs with; unknown until it has uploaded its identity keys. */
  readonly signingKey: VerifyKey | undefined;
}

/** Characters of an algorithm or key id, and UTF-16 units of a key; a signed one has about 200. */
const [longestName, largestKey] = [255, 4_096];

/**
 * Checks one-time keys: `<algorithm>:<key id>` to a key.
 * Source: client-server API, "Key algorithms" and "One-time and fallback keys".
 * @throws MatrixError M_INVALID_PARAM, M_INVALID_SIGNATURE, M_TOO_LARGE
 */
export function parseOneTimeKeys(keys: JsonObject, owner: KeyOwner): OneTimeKey[] {
  return Object.entries(keys).map(([name, key]) => parseKey(name, key, owner));
}

/** `parseOneTimeKeys` for fallback keys, of which there is one of each algorithm. */
export function parseFallbackKeys(keys: JsonObject, owner: KeyOwner): OneTimeKey[] {
  const parsed = parseOneTimeKeys(keys, owner);
  const algorithms = new Set(parsed.map(({ algorithm }) => algorithm));
  if (algorithms.size < parsed.length) {
    throw invalidParam('There can be only one fallback key of each algorithm');
  }
  return parsed;
}

function parseKey(name: string, key: JsonValue | undefined, owner: KeyOwner): OneTimeKey {
  const colon = name.indexOf(':');
  const [algorithm, keyId] = [name.slice(0, colon), name.slice(colon + 1)];
  const isName = colon > 0 && keyId !== '' && name.length <= longestName && !name.includes('\0');
  if (!isName) throw invalidParam('The name of a one-time key must be <algorithm>:<key id>');
  if (algorithm === 'signed_curve25519') checkSigned(name, key, owner);
  else if (algorithm === 'curve25519') {
    if (!isPublicKey(key)) throw invalidParam(`${name} is not a key`);
  } else if (typeof key !== 'string' && !(isJsonObject(key) && typeof key['key'] === 'string')) {
    throw invalidParam(`${name} must be a key or an object with one`);
  }
  const text = JSON.stringify(key);
  if (text.length > largestKey) throw tooLarge(`${name} is too large`);
  return { algorithm, keyId, key: text, digest: digestOf(key) };
}

function checkSigned(name: string, key: JsonValue | undefined, owner: KeyOwner): void {
  if (!isJsonObject(key) || !isPublicKey(key['key']) || !isJsonObject(key['signatures'])) {
    throw invalidParam(`${name} must be an object with a key and signatures`);
  }
  const { userId, deviceId, signingKey } = owner;
  if (signingKey && !isSignedBy(key, userId, `ed25519:${deviceId}`, signingKey)) {
    throw invalidSignature(`${name} is not signed by the ed25519 key of the device`);
  }
}

function digestOf(key: JsonValue | undefined): string {
  const text = isJsonObject(key) ? coveredText(key) : canonicalJson(key ?? null);
  return createHash('sha256').update(text).digest('base64url');
}
