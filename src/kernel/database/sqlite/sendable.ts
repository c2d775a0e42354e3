import type { SqlValue, Statement } from '../statement.ts';

/**
 * Makes parameters cheap to send to another thread. Copies bytes that are a view of a larger buffer, because
 * the whole buffer would be sent.
 */
export function sendable<T>(parameters: readonly T[]): readonly T[] {
  return parameters.some(isView)
    ? parameters.map((value) => (isView(value) ? compact(value) : value))
    : parameters;
}

/** Makes the parameters of all rows of statements cheap to send, as `sendable` does. */
export function sendableStatements(statements: readonly Statement[]): readonly Statement[] {
  return statements.map(({ sql, rows }) => ({ sql, rows: rows.map((row) => sendable<SqlValue>(row)) }));
}

const isView = (value: unknown): value is Uint8Array =>
  value instanceof Uint8Array && value.byteLength < value.buffer.byteLength;

const compact = <T>(value: T & Uint8Array): T => new Uint8Array(value) as Uint8Array as T;
