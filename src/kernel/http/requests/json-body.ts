import { isUtf8 } from 'node:buffer';
import {
  badJson,
  endOfString,
  jsonQuote,
  notJson,
  type ParseOptions,
  parseJson as parseProtocolJson,
} from '../../../protocol/index.ts';

export interface JsonLimits {
  /** Maximum nesting of objects and arrays. */
  readonly depth: number;
  /** Whether keys named `__proto__` are accepted: rooms of other servers may contain events with them. */
  readonly allowPrototypeKeys: boolean;
  /**
   * How numbers are parsed: `as written` for other servers, whose signatures and hashes cover the written
   * form.
   */
  readonly numbers: NonNullable<ParseOptions['numbers']>;
}

/** Limits for clients: deep enough for every client, shallow enough for every recursive function. */
export const clientJsonLimits: JsonLimits = { depth: 128, allowPrototypeKeys: false, numbers: 'values' };

/**
 * Limits for other servers, which relay the events of their users: rejecting an event would split the room.
 */
export const serverJsonLimits: JsonLimits = { depth: 1000, allowPrototypeKeys: true, numbers: 'as written' };

/**
 * Parses a JSON body.
 * @throws MatrixError M_NOT_JSON for invalid JSON or UTF-8; M_BAD_JSON for excessive nesting, lone surrogates
 * or, from clients, a key named `__proto__`
 */
export function parseJson(bytes: Buffer, limits: JsonLimits): unknown {
  if (!isUtf8(bytes)) throw notJson('The body is not valid UTF-8');
  if (bytes.length > limits.depth * 2 && nestsDeeperThan(bytes, limits.depth)) {
    throw badJson(`The body is nested deeper than ${limits.depth} levels`);
  }
  const value = parse(bytes.toString('utf8'), limits);
  // A lone surrogate needs an escape sequence, and the forbidden key an escape sequence or its plain text.
  if (bytes.includes('\\u') || (!limits.allowPrototypeKeys && bytes.includes('__proto__'))) {
    rejectForbiddenText(value, limits);
  }
  return value;
}

/** The body of a request from another server. */
export interface ServerBody {
  readonly value: unknown;
  /**
   * The whole text if a part of it is left out of `value`; the signature covers it if it is canonical JSON.
   */
  readonly text: string | undefined;
}

/** Nesting level of the events and EDUs of a transaction: below the body and its lists. */
const itemLevel = 3;

/**
 * Maximum bytes of an item: no event or EDU needs as many, and one item is processed without a pause for other work.
 */
const maxItemBytes = 1024 * 1024;

/**
 * Parses the body of a request from another server. An item of a list (an event, for instance) that is nested
 * too deeply becomes null, so that it does not block the other items.
 * @throws MatrixError as `parseJson` does
 */
export function parseServerBody(bytes: Buffer): ServerBody {
  if (bytes.length <= serverJsonLimits.depth * 2 || !nestsDeeperThan(bytes, serverJsonLimits.depth)) {
    return { value: parseJson(bytes, serverJsonLimits), text: undefined };
  }
  const shortening = withoutUnusableItems(bytes, serverJsonLimits.depth);
  let step = shortening.next();
  while (!step.done) step = shortening.next();
  return { value: parseJson(step.value, serverJsonLimits), text: bytes.toString('utf8') };
}

/** Bytes that are scanned between two yields. */
const bytesAtOnce = 256 * 1024;

/**
 * Returns the text with null in place of each object or array at `itemLevel` that is nested deeper than `limit` or has
 * more than `maxItemBytes`: the same bytes where there are none.
 */
export function* withoutUnusableItems(bytes: Buffer, limit: number): Generator<void, Buffer> {
  const pieces: Buffer[] = [];
  let [depth, deepest, start, copied, yielded] = [0, 0, 0, 0, 0];
  for (let i = 0; i < bytes.length; i++) {
    if (i - yielded >= bytesAtOnce) {
      yielded = i;
      yield;
    }
    const byte = bytes[i]!;
    if (byte === jsonQuote) i = endOfString(bytes, i + 1);
    else if ((byte | 0x20) === 0x7b) {
      depth++;
      if (depth === itemLevel) [start, deepest] = [i, depth];
      deepest = Math.max(deepest, depth);
    } else if ((byte | 0x20) === 0x7d) {
      if (depth === itemLevel && (deepest > limit || i - start >= maxItemBytes)) {
        pieces.push(bytes.subarray(copied, start), nullBytes);
        copied = i + 1;
      }
      depth--;
    }
  }
  return copied === 0 ? bytes : Buffer.concat([...pieces, bytes.subarray(copied)]);
}

const nullBytes = Buffer.from('null');

function parse(text: string, { numbers, depth: maxDepth }: JsonLimits): unknown {
  if (numbers === 'as written') return parseProtocolJson(text, { numbers, maxDepth });
  try {
    return JSON.parse(text);
  } catch {
    throw notJson('The body is not valid JSON');
  }
}

/** Counts brackets outside of strings; whether they match is for the parser to find. */
function nestsDeeperThan(bytes: Buffer, limit: number): boolean {
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === jsonQuote) i = endOfString(bytes, i + 1);
    // `[` is 0x5b and `{` is 0x7b, `]` is 0x5d and `}` is 0x7d: they differ in the bit 0x20 only.
    else if ((byte | 0x20) === 0x7b) {
      if (++depth > limit) return true;
    } else if ((byte | 0x20) === 0x7d) depth--;
  }
  return false;
}

function rejectForbiddenText(value: unknown, limits: JsonLimits): void {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw badJson('The body contains a lone surrogate');
  } else if (Array.isArray(value)) {
    for (const item of value) rejectForbiddenText(item, limits);
  } else if (value !== null && typeof value === 'object') {
    for (const [key, member] of Object.entries(value)) {
      if (key === '__proto__' && !limits.allowPrototypeKeys)
        throw badJson('A key must not be named __proto__');
      rejectForbiddenText(key, limits);
      rejectForbiddenText(member, limits);
    }
  }
}
