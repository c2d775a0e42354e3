import { badJson } from '../errors.ts';
import type { JsonValue } from '../json.ts';
import {
  type CanonicalNumbers,
  canonicalJson,
  canonicalString,
  MAX_JSON_DEPTH,
  sortByCodePoint,
} from './canonical-json.ts';
import { isRawNumber } from './raw-number.ts';

/** Number of members of objects and items of arrays that are written between two yields. */
const valuesAtOnce = 200;

/**
 * Like `canonicalJson`, for values that take long to write: yields the text in pieces of `valuesAtOnce` values.
 * @throws MatrixError as `canonicalJson`
 */
export function* canonicalJsonPieces(
  value: JsonValue,
  numbers: CanonicalNumbers = 'strict',
): Generator<string> {
  const writer = new PieceWriter(numbers);
  yield* writer.write(value, MAX_JSON_DEPTH);
  yield writer.take();
}

class PieceWriter {
  readonly #numbers: CanonicalNumbers;
  #text = '';
  #values = 0;

  constructor(numbers: CanonicalNumbers) {
    this.#numbers = numbers;
  }

  /** Returns the text that was written since the last call. */
  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }

  *write(value: JsonValue, depth: number): Generator<string> {
    if (typeof value !== 'object' || value === null || isRawNumber(value)) {
      this.#text += canonicalJson(value, this.#numbers);
      return;
    }
    if (depth === 0) throw badJson('JSON is nested too deeply');
    let separator = Array.isArray(value) ? '[' : '{';
    const keys = Array.isArray(value) ? value.keys() : sortByCodePoint(Object.keys(value));
    for (const key of keys) {
      const child = (value as Readonly<Record<string, JsonValue | undefined>>)[key];
      if (child === undefined) continue;
      this.#text += separator;
      separator = ',';
      if (typeof key === 'string') this.#text += `${canonicalString(key)}:`;
      if (typeof child === 'object') yield* this.write(child, depth - 1);
      else this.#text += canonicalJson(child, this.#numbers);
      if (++this.#values % valuesAtOnce === 0) yield this.take();
    }
    if (separator !== ',') this.#text += separator;
    this.#text += Array.isArray(value) ? ']' : '}';
  }
}
