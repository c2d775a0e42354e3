import { createHash } from 'node:crypto';
import {
  badJson,
  canonicalJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  tooLarge,
} from '../../protocol/index.ts';
import { coveredText } from '../signed-object.ts';

/** A parsed one-time or fallback key. */
export interface OneTimeKey {
  readonly algorithm: string;
  /** The part of the key's name (`<algorithm>:<key id>`) after the colon. */
  readonly keyId: string;
  /** The key as JSON. */
  readonly key: string;
  /** Equal for equal keys, whatever their signatures are. */
  readonly digest: string;
}

/** Maximum characters of a key name. */
const maxNameLength = 255;

/** Maximum UTF-16 code units of a key. A signed key has about 200. */
const maxKeyLength = 4_096;

/**
 * Parses one-time keys, `<algorithm>:<key id>` to key. Verifies neither signatures nor key material: the devices that
 * claim the keys do.
 * Source: client-server API, "Key algorithms" and "One-time and fallback keys".
 * @throws MatrixError M_BAD_JSON, M_TOO_LARGE
 */
export function parseOneTimeKeys(keys: JsonObject): OneTimeKey[] {
  return Object.entries(keys).map(([name, key]) => parseKey(name, key));
}

/** Parses fallback keys, `<algorithm>:<key id>` to key, at most one for each algorithm. @throws MatrixError M_BAD_JSON, M_TOO_LARGE */
export function parseFallbackKeys(keys: JsonObject): OneTimeKey[] {
  const parsed = parseOneTimeKeys(keys);
  const algorithms = new Set(parsed.map(({ algorithm }) => algorithm));
  if (algorithms.size < parsed.length) {
    throw badJson('There may be only one fallback key for each algorithm');
  }
  return parsed;
}

function parseKey(name: string, key: JsonValue | undefined): OneTimeKey {
  const colon = name.indexOf(':');
  const algorithm = name.slice(0, colon);
  const keyId = name.slice(colon + 1);
  const isName = colon > 0 && keyId !== '' && name.length <= maxNameLength && !name.includes('\0');
  if (!isName) throw badJson('The name of a one-time or fallback key must be <algorithm>:<key id>');
  if (algorithm === 'signed_curve25519') checkSigned(name, key);
  else if (algorithm === 'curve25519') {
    if (typeof key !== 'string') throw badJson(`${name} must be a string`);
  } else if (typeof key !== 'string' && !(isJsonObject(key) && typeof key['key'] === 'string')) {
    throw badJson(`${name} must be a string or an object with a string "key"`);
  }
  const text = JSON.stringify(key);
  if (text.length > maxKeyLength) throw tooLarge(`${name} is too large`);
  return { algorithm, keyId, key: text, digest: digestOf(key) };
}

function checkSigned(name: string, key: JsonValue | undefined): void {
  const isWellFormed =
    isJsonObject(key) &&
    typeof key['key'] === 'string' &&
    (key['signatures'] === undefined || isJsonObject(key['signatures']));
  if (!isWellFormed)
    throw badJson(`${name} must be an object with a string "key"; its "signatures" must be an object`);
}

function digestOf(key: JsonValue | undefined): string {
  const text = isJsonObject(key) ? coveredText(key) : canonicalJson(key ?? null);
  return createHash('sha256').update(text).digest('base64url');
}
