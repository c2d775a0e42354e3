import { badJson } from '../errors.ts';
import type { JsonValue } from '../json.ts';
import { isRawNumber } from './raw-number.ts';

/**
 * How canonical JSON treats numbers that are not integers within 53 bits. `strict` refuses them, as the
 * specification demands and room versions since v6 enforce. `as written` keeps floats and large integers as
 * they were received, which older rooms need.
 */
export type CanonicalNumbers = 'strict' | 'as written';

/**
 * Maximum nesting depth of objects and arrays: far more than events need, far less than overflows the stack.
 */
export const MAX_JSON_DEPTH = 1000;

/**
 * Serialises canonical JSON: no white space, keys sorted by Unicode code point, only the escapes that JSON
 * demands. Fields that are `undefined` are left out.
 * Source: appendices, "Canonical JSON".
 * @throws MatrixError M_BAD_JSON for a lone surrogate, a number that `numbers` refuses, or more than
 * `MAX_JSON_DEPTH` levels.
 */
export function canonicalJson(value: JsonValue, numbers: CanonicalNumbers = 'strict'): string {
  return write(value, numbers === 'strict', MAX_JSON_DEPTH);
}

function write(value: JsonValue, strict: boolean, depth: number): string {
  switch (typeof value) {
    case 'string':
      return canonicalString(value);
    case 'number':
      return canonicalNumber(value, strict);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (depth === 0) throw badJson('JSON is nested too deeply');
      return Array.isArray(value)
        ? writeArray(value, strict, depth - 1)
        : writeObject(value as { readonly [key: string]: JsonValue | undefined }, strict, depth - 1);
    default:
      throw badJson(`A ${typeof value} is not a JSON value`);
  }
}

function writeArray(items: readonly JsonValue[], strict: boolean, depth: number): string {
  if (items.length === 0) return '[]';
  let text = `[${write(items[0]!, strict, depth)}`;
  for (let i = 1; i < items.length; i++) text += `,${write(items[i]!, strict, depth)}`;
  return `${text}]`;
}

function writeObject(
  object: { readonly [key: string]: JsonValue | undefined },
  strict: boolean,
  depth: number,
): string {
  const keys = sortByCodePoint(Object.keys(object));
  if (keys.length === 1 && keys[0] === 'rawJSON' && isRawNumber(object)) {
    return writeRawNumber(object.rawJSON, strict);
  }
  let text = '';
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i]!;
    const value = object[key];
    if (value !== undefined) {
      text += (text === '' ? '{' : ',') + canonicalKey(key) + write(value, strict, depth);
    }
  }
  return text === '' ? '{}' : `${text}}`;
}

function canonicalNumber(value: number, strict: boolean): string {
  if (Number.isSafeInteger(value)) return `${value}`;
  if (strict) throw badJson('Numbers must be integers between -(2^53)+1 and 2^53-1');
  if (!Number.isFinite(value)) throw badJson('Numbers must be finite');
  return `${value}`;
}

function writeRawNumber(source: string, strict: boolean): string {
  if (strict) throw badJson('Numbers must be integers, written without fraction, exponent or negative zero');
  return source === '-0' ? '0' : source;
}

// Matches what may not stand verbatim in a canonical string: control characters, quotes, backslashes and
// UTF-16 surrogates.
const needsEscaping = /[^ !#-[\]-\ud7ff\ue000-\uffff]/;

/**
 * Serialises one string as canonical JSON, with its quotes.
 * @throws MatrixError M_BAD_JSON if it holds a lone surrogate, which UTF-8 cannot encode.
 */
export function canonicalString(value: string): string {
  if (!needsEscaping.test(value)) return `"${value}"`;
  if (!value.isWellFormed()) throw badJson('A string holds a lone UTF-16 surrogate');
  return JSON.stringify(value);
}

const cachedKeys = new Map<string, string>();
const MAX_CACHED_KEYS = 1024;
const MAX_CACHED_KEY_LENGTH = 40;

/**
 * Serialises a key and its colon. Event keys are few and repeat, so the first `MAX_CACHED_KEYS` are cached.
 */
function canonicalKey(key: string): string {
  const known = cachedKeys.get(key);
  if (known !== undefined) return known;
  const text = `${canonicalString(key)}:`;
  if (key.length <= MAX_CACHED_KEY_LENGTH && cachedKeys.size < MAX_CACHED_KEYS) cachedKeys.set(key, text);
  return text;
}

/** Sorts in place by code point. JavaScript compares UTF-16 units, which differs only for surrogates. */
export function sortByCodePoint(keys: string[]): string[] {
  for (let i = 1; i < keys.length; i++) {
    if (keys[i - 1]! > keys[i]!) {
      keys.sort();
      break;
    }
  }
  return keys.some(hasSurrogate) ? keys.sort(compareCodePoints) : keys;
}

const surrogate = /[\ud800-\udfff]/;

function hasSurrogate(key: string): boolean {
  return surrogate.test(key);
}

/** Compares by Unicode code point: surrogate pairs sort after U+E000 to U+FFFF. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return codePointRank(x) - codePointRank(y);
  }
  return a.length - b.length;
}

function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
