import type { JsonValue } from '../json.ts';

declare global {
  interface JSON {
    rawJSON(text: string): WrittenNumber;
    isRawJSON(value: unknown): value is WrittenNumber;
  }
}

/**
 * A number that JavaScript would print differently from how it was received: `1.0`, `1e3`, `-0`, or an integer
 * beyond 53 bits. Rooms of version 1 to 5 may hold such numbers, and their hashes cover the digits as written.
 * `JSON.stringify` prints it as written, too.
 */
export interface WrittenNumber {
  readonly rawJSON: string;
}

/** @param source A number in JSON syntax. */
export function writtenNumber(source: string): WrittenNumber {
  return JSON.rawJSON(source);
}

/** Whether `value` is a number that is kept as it was written. */
export function isWrittenNumber(value: unknown): value is WrittenNumber {
  return JSON.isRawJSON(value);
}

/** The nearest double of a JSON number, however it was written; `undefined` for every other value. */
export function numberOf(value: JsonValue | undefined): number | undefined {
  if (typeof value === 'number') return value;
  return isWrittenNumber(value) ? Number(value.rawJSON) : undefined;
}
