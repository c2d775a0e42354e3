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

/** Values that are written between two yields. */
const valuesAtOnce = 200;

/**
 * Like `canonicalJson`, for values that take long to write: yields after every few hundred values.
 * @throws MatrixError as `canonicalJson`
 */
export function* canonicalJsonSteps(
  value: JsonValue,
  numbers: CanonicalNumbers = 'strict',
): Generator<void, string> {
  const writer = new Writer(numbers);
  yield* writer.write(value, MAX_JSON_DEPTH);
  return writer.text();
}

class Writer {
  readonly #numbers: CanonicalNumbers;
  readonly #parts: string[] = [];
  #written = 0;

  constructor(numbers: CanonicalNumbers) {
    this.#numbers = numbers;
  }

  text(): string {
    return this.#parts.join('');
  }

  *write(value: JsonValue, depth: number): Generator<void> {
    if (typeof value !== 'object' || value === null || isRawNumber(value)) {
      this.#parts.push(canonicalJson(value, this.#numbers));
      return;
    }
    if (depth === 0) throw badJson('JSON is nested too deeply');
    let before = Array.isArray(value) ? '[' : '{';
    const members = Array.isArray(value) ? value.keys() : sortByCodePoint(Object.keys(value));
    for (const name of members) {
      const member = (value as Readonly<Record<string, JsonValue | undefined>>)[name];
      if (member === undefined) continue;
      this.#parts.push(before);
      before = ',';
      if (typeof name === 'string') this.#parts.push(canonicalString(name), ':');
      if (typeof member === 'object') yield* this.write(member, depth - 1);
      else this.#parts.push(canonicalJson(member, this.#numbers));
      if (++this.#written % valuesAtOnce === 0) yield;
    }
    if (before !== ',') this.#parts.push(before);
    this.#parts.push(Array.isArray(value) ? ']' : '}');
  }
}
