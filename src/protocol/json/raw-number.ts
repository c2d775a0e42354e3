import type { JsonValue } from '../json.ts';

declare global {
  interface JSON {
    rawJSON(text: string): RawNumber;
    isRawJSON(value: unknown): value is RawNumber;
  }
}

/**
 * A number in its received notation, because JavaScript would print it differently: `1.0`, `1e3`, `-0`, or an integer
 * beyond 53 bits. Rooms of versions 1 to 5 may hold such numbers, and event hashes cover the digits as written.
 * `JSON.stringify` prints them as written.
 */
export interface RawNumber {
  readonly rawJSON: string;
}

/** @param source a number in JSON syntax */
export function rawNumber(source: string): RawNumber {
  return JSON.rawJSON(source);
}

/** Whether `value` is a `RawNumber`. */
export function isRawNumber(value: unknown): value is RawNumber {
  return JSON.isRawJSON(value);
}

/** Returns the nearest double of a JSON number, plain or raw; `undefined` for every other value. */
export function numberOf(value: JsonValue | undefined): number | undefined {
  if (typeof value === 'number') return value;
  return isRawNumber(value) ? Number(value.rawJSON) : undefined;
}
