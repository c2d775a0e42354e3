import { isUtf8 } from 'node:buffer';
import { badJson, notJson, tooLarge } from '../errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { MAX_JSON_DEPTH } from './canonical-json.ts';
import { exceedsDepth } from './depth.ts';
import { rawNumber } from './raw-number.ts';

export interface ParseOptions {
  /**
   * Maximum size in UTF-8 bytes (for a string: UTF-16 units). Unlimited by default, because the reader of a
   * body bounds it.
   */
  readonly maxSize?: number;
  /**
   * Maximum nesting depth of objects and arrays; `MAX_JSON_DEPTH` by default. Allow more for bodies with events of many
   * servers: `receivePdu` then refuses only an event that is too deep, instead of `parseJson` the whole body.
   */
  readonly maxDepth?: number;
  /**
   * `values` (the default): every number becomes the nearest double. `as written`: a number that JavaScript
   * would print differently becomes a `RawNumber`. Needed for events, because hashes cover the digits.
   */
  readonly numbers?: 'values' | 'as written';
  /** Refuses text with a lone surrogate (`"\ud800"`), which UTF-8 cannot encode. Off by default. */
  readonly wellFormed?: boolean;
}

/**
 * Parses JSON from outside. The last of duplicate keys counts, as in nearly every implementation. A key named
 * `__proto__` becomes an own property like any other and never sets a prototype; copy objects with spread or
 * `Object.entries`, not by assignment.
 * @throws MatrixError M_NOT_JSON if it is not JSON in UTF-8, M_BAD_JSON if it is too deep or not well-formed,
 * M_TOO_LARGE; never anything else.
 */
export function parseJson(input: Uint8Array | string, options: ParseOptions = {}): JsonValue {
  if (options.maxSize !== undefined && input.length > options.maxSize) throw tooLarge('JSON is too large');
  const text = typeof input === 'string' ? input : decode(input);
  if (exceedsDepth(text, options.maxDepth ?? MAX_JSON_DEPTH)) throw badJson('JSON is nested too deeply');
  const value = parseText(text, options.numbers === 'as written' && nonCanonicalNumber.test(text));
  if (options.wellFormed === true && mayHoldLoneSurrogate(text)) refuseLoneSurrogates(value);
  return value;
}

/**
 * Like `parseJson`, for bodies that must be objects.
 * @throws MatrixError also M_BAD_JSON if the value is not an object
 */
export function parseJsonObject(input: Uint8Array | string, options: ParseOptions = {}): JsonObject {
  const value = parseJson(input, options);
  if (!isJsonObject(value)) throw badJson('Expected a JSON object');
  return value;
}

function decode(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw notJson('The content is not valid UTF-8');
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

// Matches a number with a fraction, an exponent, a negative zero or 16 digits: a double holds every integer of up to
// 15 digits. Also matches such a text within a string, which only costs time. Linear, because it backtracks over one
// run of digits at most.
const nonCanonicalNumber = /(?:^|[:,[\s])(?:-?(?:\d+[.eE]|\d{16})|-0)/;

function mayHoldLoneSurrogate(text: string): boolean {
  return /\\u[dD][89a-fA-F]/.test(text) || !text.isWellFormed();
}

function parseText(text: string, keepRawNumbers: boolean): JsonValue {
  try {
    return keepRawNumbers ? JSON.parse(text, reviveRawNumber) : JSON.parse(text);
  } catch {
    throw notJson('The content is not valid JSON');
  }
}

function reviveRawNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number') return value;
  const source = context?.source;
  return source === undefined || String(value) === source ? value : rawNumber(source);
}

function refuseLoneSurrogates(value: JsonValue): void {
  const pending: (JsonValue | undefined)[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    if (typeof next === 'string') {
      if (!next.isWellFormed()) throw badJson('A string holds a lone UTF-16 surrogate');
    } else if (typeof next === 'object' && next !== null) {
      for (const [key, member] of Object.entries(next)) pending.push(key, member);
    }
  }
}
