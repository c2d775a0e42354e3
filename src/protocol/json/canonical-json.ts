import { badJson } from '../errors.ts';
import type { JsonValue } from '../json.ts';
import { isRawNumber } from './raw-number.ts';

/**
 * What canonical JSON makes of numbers that are not integers within 53 bits. `strict`: refuse them, as the
 * specification has it and as room versions since v6 enforce. `as written`: keep them, as the rooms before had
 * to; floats and large integers then come out as they were received.
 */
export type CanonicalNumbers = 'strict' | 'as written';

/** Objects and arrays within each other, at most. Far beyond what events need, far below what a stack takes. */
export const MAX_JSON_DEPTH = 1000;

/**
 * Canonical JSON: no white space, keys sorted by Unicode code point, only the escapes that JSON demands. Members
 * that are `undefined` are left out.
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
      throw badJson(`A ${typeof value} is no JSON`);
  }
}

function writeArray(items: readonly JsonValue[], strict: boolean, depth: number): string {
  if (items.length === 0) return '[]';
  let text = `[${write(items[0]!, strict, depth)}`;
  for (let i = 1; i < items.length; i++) text += `,${write(items[i]!, strict, depth)}`;
  return `${text}]`;
}

function writeObject(
  members: { readonly [key: string]: JsonValue | undefined },
  strict: boolean,
  depth: number,
): string {
  const keys = sortByCodePoint(Object.keys(members));
  if (keys.length === 1 && keys[0] === 'rawJSON' && isRawNumber(members)) {
    return writeRawNumber(members.rawJSON, strict);
  }
  let text = '';
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i]!;
    const value = members[key];
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

// Anything but what a JSON string holds verbatim: so controls, quotes, backslashes, and what may be half of a
// surrogate pair.
const needsEscaping = /[^ !#-[\]-\ud7ff\ue000-\uffff]/;

/**
 * One string as canonical JSON, quotes included.
 * @throws MatrixError M_BAD_JSON if it holds a lone surrogate, which has no UTF-8.
 */
export function canonicalString(value: string): string {
  if (!needsEscaping.test(value)) return `"${value}"`;
  if (!value.isWellFormed()) throw badJson('Text holds a lone surrogate');
  return JSON.stringify(value);
}

const cachedKeys = new Map<string, string>();
const MAX_CACHED_KEYS = 1024;
const MAX_CACHED_KEY_LENGTH = 40;

/** A key with its colon. The keys of events are few and come again and again; the first ones are remembered. */
function canonicalKey(key: string): string {
  const known = cachedKeys.get(key);
  if (known !== undefined) return known;
  const text = `${canonicalString(key)}:`;
  if (key.length <= MAX_CACHED_KEY_LENGTH && cachedKeys.size < MAX_CACHED_KEYS) cachedKeys.set(key, text);
  return text;
}

/** Sorts in place. JavaScript compares UTF-16 units, which differs only where surrogates are. */
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

/** Compares by Unicode code point: surrogate pairs come after U+E000 to U+FFFF. */
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
