import { type RawBuilder, sql } from 'kysely';

/** Removes U+0000, which databases do not store and PostgreSQL rejects in parameters. */
export const withoutNul = (text: string): string => text.replaceAll('\0', '');

/** Returns a text in which no character has a special meaning in a pattern. */
const escaped = (text: string) => withoutNul(text).replaceAll(/[\\%_]/g, '\\$&');

/** Maximum UTF-8 bytes of a pattern in SQLite. No column of a list has longer texts, apart from names of rooms. */
const maxPattern = 50_000;

/** Returns the condition that a column contains a text. A text that is too long for a pattern in SQLite matches no row. */
export function contains(column: RawBuilder<unknown>, text: string): RawBuilder<boolean> {
  const pattern = `%${escaped(text)}%`;
  if (Buffer.byteLength(pattern) > maxPattern) return sql<boolean>`1 = 0`;
  return sql<boolean>`${column} like ${pattern} escape '\\'`;
}
