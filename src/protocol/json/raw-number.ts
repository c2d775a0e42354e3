import type { JsonValue } from '../json.ts';

declare global {
  interface JSON {
    rawJSON(text: string): RawNumber;
    isRawJSON(value: unknown): value is RawNumber;
  }
}

/**
 * A number that JavaScript would print differently from how it was received: `1.0`, `1e3`, `-0`, or an integer
 * beyond 53 bits. Rooms of version 1 to 5 may hold such numbers, and their hashes cover the digits as written.
 * `JSON.stringify` prints it as written, too.
 */
export interface RawNumber {
  readonly rawJSON: string;
}

/** @param source A number in JSON syntax. */
export function rawNumber(source: string): RawNumber {
  return JSON.rawJSON(source);
}

/** Whether `value` is a number that is kept as it was written. */
export function isRawNumber(value: unknown): value is RawNumber {
  return JSON.isRawJSON(value);
}

/** The nearest double of a JSON number, however it was written; `undefined` for every other value. */
export function numberOf(value: JsonValue | undefined): number | undefined {
  if (typeof value === 'number') return value;
  return isRawNumber(value) ? Number(value.rawJSON) : undefined;
}
