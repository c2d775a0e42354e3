import { RE2JS } from 're2js';

/** Decides whether a text matches. */
export type Matcher = (text: string) => boolean;

/**
 * A pattern in which `*` stands for any run of characters and `?` for any one. It matches a text as a
 * whole, in linear time.
 */
export function compileGlob(pattern: string): Matcher {
  return wholeMatcher([...pattern].map(wildcard).join(''));
}

/**
 * As `compileGlob`, with sets of characters as in the names of files: `[abc]`, `[a-z]`, `[!abc]`. A
 * bracket that is not closed stands for itself.
 */
export function compileFileNamePattern(pattern: string): Matcher {
  const pieces = [...pattern.matchAll(/\[!?\]?[^\]]*\]|./gsu)].map(([piece]) =>
    piece.length > 2 && piece.startsWith('[') ? characterSet(piece) : wildcard(piece),
  );
  try {
    return wholeMatcher(pieces.join(''));
  } catch {
    return () => false;
  }
}

/**
 * A regular expression in RE2's syntax (no back-references, no look-around), which is matched in linear
 * time whatever the pattern. It must match from the text's beginning, not to its end.
 * Throws when the pattern is not one.
 */
export function compileRegularExpression(pattern: string): Matcher {
  const compiled = RE2JS.compile(pattern);
  return (text) => compiled.matcher(text).lookingAt();
}

/**
 * A regular expression when it begins with `^`, else a pattern as for the names of files. Throws as
 * `compileRegularExpression`.
 */
export function compileGlobOrRegularExpression(pattern: string): Matcher {
  return pattern.startsWith('^') ? compileRegularExpression(pattern) : compileFileNamePattern(pattern);
}

/** Whether a text is a regular expression in RE2's syntax. */
export function isRegularExpression(pattern: string): boolean {
  try {
    RE2JS.compile(pattern);
    return true;
  } catch {
    return false;
  }
}

function wildcard(character: string): string {
  if (character === '*') return '.*';
  return character === '?' ? '.' : RE2JS.quote(character);
}

/** A set whose range runs backwards (`[z-a]`) holds nothing, and makes a pattern that nothing matches. */
function characterSet(piece: string): string {
  const negated = piece.startsWith('[!');
  const content = piece.slice(negated ? 2 : 1, -1).replace(/[\\[\]^&~|]/g, '\\$&');
  return `[${negated ? '^' : ''}${content}]`;
}

function wholeMatcher(expression: string): Matcher {
  const compiled = RE2JS.compile(expression, RE2JS.DOTALL);
  return (text) => compiled.matches(text);
}
