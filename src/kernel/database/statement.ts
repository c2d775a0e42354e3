/**
 * Values that may be bound, at most 32,000 per statement: no booleans (use 0 and 1), no dates (use
 * milliseconds), no text with U+0000. Queries return numbers as numbers, booleans as 0 or 1, and bytes as
 * `Uint8Array`.
 */
export type SqlValue = string | number | bigint | Uint8Array | null;

/** Portable SQL with `?` placeholders, and the parameters of each execution. */
export interface Statement {
  readonly sql: string;
  /** The parameters of each execution; at least one execution. */
  readonly rows: readonly (readonly SqlValue[])[];
}
