/** Matches a literal, a quoted identifier, a comment, or a placeholder (`$1` or `?`). */
const token = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$\d+|\?/g;

/**
 * Replaces the placeholders `?` by the placeholders `$1`, `$2`, ... of PostgreSQL. Leaves literals, quoted identifiers
 * and comments unchanged. SQL with numbered placeholders stays as it is.
 */
export function numberPlaceholders(sql: string): string {
  if (!sql.includes('?')) return sql;
  let count = 0;
  let numbered = false;
  const translated = sql.replace(token, (match) => {
    if (match.startsWith('$')) numbered = true;
    if (match !== '?') return match;
    count += 1;
    return `$${count}`;
  });
  return numbered ? sql : translated;
}
