/** A literal, a quoted identifier, a comment, or one of the two kinds of placeholder. */
const token = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$\d+|\?/g;

/**
 * SQL with `?` placeholders in PostgreSQL's spelling: `$1`, `$2`, ... Placeholders in literals, quoted identifiers and
 * comments stay as they are. SQL that has numbered placeholders already comes back unchanged.
 */
export function numberPlaceholders(sql: string): string {
  if (!sql.includes('?')) return sql;
  let count = 0;
  let numbered = false;
  const translated = sql.replace(token, (found) => {
    if (found.startsWith('$')) numbered = true;
    if (found !== '?') return found;
    count += 1;
    return `$${count}`;
  });
  return numbered ? sql : translated;
}
