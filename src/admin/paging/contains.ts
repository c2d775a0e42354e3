import { type RawBuilder, sql } from 'kysely';

/** Databases do not store U+0000, and PostgreSQL rejects it in parameters. */
const escaped = (text: string) => text.replaceAll('\0', '').replaceAll(/[\\%_]/g, '\\$&');

/** Whether a column contains a text. */
export const contains = (column: RawBuilder<unknown>, text: string): RawBuilder<boolean> =>
  isLike(column, ['%', text, '%']);

/** Whether a column matches a pattern. @param parts wildcards, and texts in the odd places */
export function isLike(column: RawBuilder<unknown>, parts: readonly string[]): RawBuilder<boolean> {
  const pattern = parts.map((part, index) => (index % 2 === 0 ? part : escaped(part))).join('');
  return sql<boolean>`${column} like ${pattern} escape '\\'`;
}
