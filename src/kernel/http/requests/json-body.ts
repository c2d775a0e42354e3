import { isUtf8 } from 'node:buffer';
import {
  badJson,
  endOfString,
  notJson,
  type ParseOptions,
  parseJson as parseProtocolJson,
  quoteByte,
} from '../../../protocol/index.ts';

export interface JsonLimits {
  /** Maximum nesting of objects and arrays. */
  readonly depth: number;
  /** Whether keys named `__proto__` are accepted: rooms of other servers may contain events with them. */
  readonly allowPrototypeKeys: boolean;
  /**
   * How numbers are parsed: `values` as JavaScript numbers; `as written` keeps the digits, which the signatures and
   * hashes of other servers cover.
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
  // Only an escape sequence can contain a lone surrogate; the key `__proto__` may be written plainly or with escapes.
  if (bytes.includes('\\u') || (!limits.allowPrototypeKeys && bytes.includes('__proto__'))) {
    rejectForbiddenText(value, limits);
  }
  return value;
}

/** The body of a request from another server. */
export interface ServerBody {
  readonly value: unknown;
  /**
   * The whole received text; only where `value` leaves out a part of the body. The signature covers this text if it is
   * canonical JSON.
   */
  readonly text: string | undefined;
}

/** Nesting level of the events and EDUs of a transaction: below the body and its lists. */
const itemLevel = 3;

/**
 * Maximum bytes of an item; a larger item is replaced by null. No event or EDU needs as many bytes, and an item is
 * processed without a pause for other work.
 */
const maxItemBytes = 1024 * 1024;

/**
 * Maximum total of JSON values in the EDUs of a transaction, counted like `JsonBounds.values`; 100 EDUs of the maximum
 * size have about 110,000. Each EDU that would exceed the maximum is replaced by null: unlike an event, an EDU is sent
 * by no other server, and no room depends on it.
 */
const maxEduValues = 150_000;

/**
 * An EDU above this size is parsed in pieces. This takes three times as long, so each of its values counts as three.
 * Other servers keep EDUs within the size limit of an event.
 */
const maxQuickEduBytes = 64 * 1024;

const eduList = Buffer.from('"edus"');

/**
 * Parses the body of a request from another server. If a part of the body is nested too deeply, some items of its lists
 * (events and EDUs) become null, so that they do not block the other items: items that are nested too deeply or have
 * too many bytes, and the EDUs above `maxEduValues`.
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
 * more than `maxItemBytes`, and of each EDU that would raise the total of the accepted EDUs above `maxEduValues`.
 * Returns `bytes` itself if nothing is replaced. Yields after each `bytesAtOnce`.
 */
export function* withoutUnusableItems(bytes: Buffer, limit: number): Generator<void, Buffer> {
  const pieces: Buffer[] = [];
  // Index of the first byte of the item.
  let start = 0;
  // Index after the last byte that `pieces` cover.
  let copied = 0;
  // Index at the last `yield`.
  let yielded = 0;
  let depth = 0;
  let deepest = 0;
  // Number of values of the item.
  let values = 0;
  // Number of values of the accepted EDUs before the item.
  let eduValues = 0;
  // Index of the first byte of the last string in the outermost object: the key of the list that is open.
  let keyStart = 0;
  // Index after the last byte of that string.
  let keyEnd = 0;
  for (let i = 0; i < bytes.length; i++) {
    if (i - yielded >= bytesAtOnce) {
      yielded = i;
      yield;
    }
    const byte = bytes[i]!;
    if (byte === quoteByte) {
      const first = i;
      i = endOfString(bytes, i + 1);
      if (depth === 1) {
        keyStart = first;
        keyEnd = i + 1;
      }
    } else if (byte === comma) values++;
    else if ((byte | 0x20) === 0x7b) {
      depth++;
      if (depth === itemLevel) {
        start = i;
        deepest = depth;
        values = 0;
      }
      values++;
      if (depth > deepest) deepest = depth;
    } else if ((byte | 0x20) === 0x7d) {
      if (depth === itemLevel) {
        const isEdu = bytes.compare(eduList, 0, eduList.length, keyStart, keyEnd) === 0;
        const counted = i - start > maxQuickEduBytes ? 3 * values : values;
        const isExcess = isEdu && eduValues + counted > maxEduValues;
        if (isExcess || deepest > limit || i - start >= maxItemBytes) {
          pieces.push(bytes.subarray(copied, start), nullBytes);
          copied = i + 1;
        } else if (isEdu) eduValues += counted;
      }
      depth--;
    }
  }
  return copied === 0 ? bytes : Buffer.concat([...pieces, bytes.subarray(copied)]);
}

const nullBytes = Buffer.from('null');

const comma = 0x2c;

function parse(text: string, { numbers, depth: maxDepth }: JsonLimits): unknown {
  if (numbers === 'as written') return parseProtocolJson(text, { numbers, maxDepth });
  try {
    return JSON.parse(text);
  } catch {
    throw notJson('The body is not valid JSON');
  }
}

/**
 * Whether brackets outside of strings are nested deeper than `limit`. Does not check whether they match: the parser
 * does that.
 */
function nestsDeeperThan(bytes: Buffer, limit: number): boolean {
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === quoteByte) i = endOfString(bytes, i + 1);
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
