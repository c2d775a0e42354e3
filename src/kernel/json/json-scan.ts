import { indexOfQuote, quoteByte, tooLarge } from '../../protocol/index.ts';

/** Bounds of the contents of a JSON text; the number of its bytes is bounded elsewhere. An absent bound does not apply. */
export interface JsonBounds {
  /** Maximum number of commas, objects and arrays together, which is close to the number of values. */
  readonly values?: number;
  /** Maximum number of objects and arrays: each costs far more memory than a number. */
  readonly containers?: number;
  /** Maximum bytes of one string and its closing quote: a string is parsed without a pause. */
  readonly stringBytes?: number;
  /** Maximum number of members of one object: they are sorted for canonical JSON. */
  readonly members?: number;
  /** Maximum number of items of a list that is a member of the outermost object, for example the list of PDUs. */
  readonly items?: number;
}

const comma = 0x2c;
const backslash = 0x5c;

/** `{`, and also `[` (0x5b) once the bit 0x20 is set. */
const opening = 0x7b;

/** `}`, and also `]` (0x5d) once the bit 0x20 is set. */
const closing = 0x7d;

/** `{` as it is in the text. */
const openingObject = 0x7b;

/** Maximum nesting depth at which members and items are counted. */
const maxCountedDepth = 1_024;

/**
 * Measures a JSON text while its bytes arrive. It does not parse the text: measuring takes a small part of the time of
 * a parser and none of its memory.
 */
export class JsonScan {
  readonly #bounds: JsonBounds;
  /** Number of commas in the open object or array of each depth. */
  readonly #commas: number[] = [];
  /** Whether an object, rather than an array, is open at each depth. */
  readonly #isObject: boolean[] = [];
  #depth = 0;
  #inString = false;
  /** Whether a backslash at the end of the last chunk escapes the next byte. */
  #isEscaped = false;
  /** Bytes of the open string in earlier chunks. */
  #stringBytes = 0;
  #bytes = 0;
  #containers = 0;
  #values = 0;
  #maxDepth = 0;

  constructor(bounds: JsonBounds = {}) {
    this.#bounds = bounds;
  }

  /** Number of bytes so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of values so far, counted like `JsonBounds.values`. */
  get values(): number {
    return this.#values;
  }

  /** The deepest nesting of objects and arrays so far. */
  get maxDepth(): number {
    return this.#maxDepth;
  }

  /**
   * Measures the next bytes of the text.
   * @throws MatrixError M_TOO_LARGE as soon as a bound is exceeded
   */
  add(chunk: Buffer): void {
    this.#bytes += chunk.length;
    for (let i = this.#inString ? this.#readString(chunk, 0) : 0; i < chunk.length; i++) {
      const byte = chunk[i]!;
      if (byte === quoteByte) {
        this.#inString = true;
        this.#stringBytes = 0;
        i = this.#readString(chunk, i + 1) - 1;
      } else if (byte === comma) this.#countComma();
      else if ((byte | 0x20) === opening) this.#open(byte === openingObject);
      else if ((byte | 0x20) === closing && this.#depth > 0) this.#depth--;
    }
    const { values = Number.POSITIVE_INFINITY, containers = Number.POSITIVE_INFINITY } = this.#bounds;
    if (this.#values > values) throw tooLarge(`The JSON has more than ${values} values`);
    if (this.#containers > containers)
      throw tooLarge(`The JSON has more than ${containers} objects and arrays`);
  }

  /** Counts the bytes of the string that continues at `start`. @returns as `#endOfString` */
  #readString(chunk: Buffer, start: number): number {
    const end = this.#endOfString(chunk, start);
    this.#stringBytes += end - start;
    const { stringBytes } = this.#bounds;
    if (stringBytes !== undefined && this.#stringBytes > stringBytes)
      throw tooLarge(`A string of the JSON has more than ${stringBytes} bytes`);
    return end;
  }

  /** Returns the index after the string that continues at `start`; the length of the chunk if the string does not end in it. */
  #endOfString(chunk: Buffer, start: number): number {
    let from = start;
    if (this.#isEscaped && from < chunk.length) {
      this.#isEscaped = false;
      from++;
    }
    for (let end = indexOfQuote(chunk, from); end !== -1; end = indexOfQuote(chunk, from)) {
      if (backslashesBefore(chunk, end, from) % 2 === 0) {
        this.#inString = false;
        return end + 1;
      }
      from = end + 1;
    }
    this.#isEscaped = from < chunk.length && backslashesBefore(chunk, chunk.length, from) % 2 === 1;
    return chunk.length;
  }

  #open(isObject: boolean): void {
    this.#containers++;
    this.#values++;
    this.#depth++;
    if (this.#depth > this.#maxDepth) this.#maxDepth = this.#depth;
    if (this.#depth > maxCountedDepth) return;
    this.#commas[this.#depth] = 0;
    this.#isObject[this.#depth] = isObject;
  }

  #countComma(): void {
    this.#values++;
    if (this.#depth > maxCountedDepth || this.#depth === 0) return;
    const commas = this.#commas[this.#depth]! + 1;
    this.#commas[this.#depth] = commas;
    const { members, items } = this.#bounds;
    if (members !== undefined && commas >= members && this.#isObject[this.#depth]) {
      throw tooLarge(`An object of the JSON has more than ${members} members`);
    }
    if (items !== undefined && commas >= items && this.#depth === 2 && !this.#isObject[2]) {
      throw tooLarge(`A list of the JSON has more than ${items} items`);
    }
  }
}

function backslashesBefore(bytes: Buffer, index: number, start: number): number {
  let first = index;
  while (first > start && bytes[first - 1] === backslash) first--;
  return index - first;
}
