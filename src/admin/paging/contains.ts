import { type RawBuilder, sql } from 'kysely';

/** Removes U+0000, which databases do not store and PostgreSQL rejects in parameters. */
export const withoutNul = (text: string): string => text.replaceAll('\0', '');

const escaped = (text: string) => withoutNul(text).replaceAll(/[\\%_]/g, '\\$&');

/** Whether a column contains a text. */
export const contains = (column: RawBuilder<unknown>, text: string): RawBuilder<boolean> =>
  isLike(column, ['%', text, '%']);

/**
 * Whether a column contains a text, ignoring case. SQLite folds ASCII letters only, so that texts with other letters are
 * also compared without folding.
 */
export function containsFolded(column: RawBuilder<unknown>, text: string): RawBuilder<boolean> {
  const folded = contains(sql`lower(${column})`, text.toLowerCase());
  return /^[\x20-\x7e]*$/.test(text) ? folded : sql<boolean>`(${folded} or ${contains(column, text)})`;
}

/** Maximum UTF-8 bytes of a pattern in SQLite. No column of a list has longer texts, apart from names of rooms. */
const maxPattern = 50_000;

/**
 * Whether a column matches a pattern. Patterns above the maximum length match nothing.
 * @param parts wildcards at even indices, literal texts at odd ones
 */
export function isLike(column: RawBuilder<unknown>, parts: readonly string[]): RawBuilder<boolean> {
  const pattern = parts.map((part, index) => (index % 2 === 0 ? part : escaped(part))).join('');
  if (Buffer.byteLength(pattern) > maxPattern) return sql<boolean>`1 = 0`;
  return sql<boolean>`${column} like ${pattern} escape '\\'`;
}
