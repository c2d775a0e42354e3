import { type RawBuilder, sql } from 'kysely';

/** Removes U+0000, which databases do not store and PostgreSQL rejects in parameters. */
export const withoutNul = (text: string): string => text.replaceAll('\0', '');

const escaped = (text: string) => withoutNul(text).replaceAll(/[\\%_]/g, '\\$&');

/** Whether a column contains a text. */
export const contains = (column: RawBuilder<unknown>, text: string): RawBuilder<boolean> =>
  isLike(column, ['%', text, '%']);

/** Whether a column matches a pattern. @param parts wildcards at even indices, literal texts at odd ones */
export function isLike(column: RawBuilder<unknown>, parts: readonly string[]): RawBuilder<boolean> {
  const pattern = parts.map((part, index) => (index % 2 === 0 ? part : escaped(part))).join('');
  return sql<boolean>`${column} like ${pattern} escape '\\'`;
}
