/** Characters with a meaning in regular expressions. */
const special = new Set('\\^$.|?*+()[]{}');

/** Characters that make the preceding character optional or repeated. */
const quantifiers = new Set('?*+{');

/**
 * Returns a prefix of every match of a pattern; empty when no prefix can be read from the pattern. Ids without this
 * prefix need not be matched against the pattern.
 */
export function literalPrefix(pattern: string): string {
  if (pattern.includes('|')) return '';
  // Characters rather than UTF-16 units: a quantifier applies to a whole character.
  const characters = Array.from(pattern);
  let text = '';
  for (let at = characters[0] === '^' ? 1 : 0; at < characters.length; at++) {
    let character = characters[at]!;
    if (character === '\\') {
      const escaped = characters[at + 1];
      // Letters and digits after a backslash are classes and assertions.
      if (escaped === undefined || !special.has(escaped)) return text;
      character = escaped;
      at++;
    } else if (special.has(character)) return text;
    if (quantifiers.has(characters[at + 1] ?? '')) return text;
    text += character;
  }
  return text;
}
