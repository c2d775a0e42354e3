import { RE2JS } from 're2js';

/** Decides whether a text matches as a whole or in part, as each maker says. */
export type Matcher = (text: string) => boolean;

/**
 * A pattern in which `*` stands for any run of characters and `?` for any one; it matches a text as a
 * whole, in time linear in the text for each star.
 */
export function compileGlob(pattern: string): Matcher {
  const pieces = [...pattern.replace(/\*+/g, '*')].map((character) => {
    if (character === '*') return '.*';
    return character === '?' ? '.' : RE2JS.quote(character);
  });
  return wholeMatcher(pieces.join(''));
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

/** A regular expression when it begins with `^`, else a glob. Throws as `compileRegularExpression`. */
export function compileGlobOrRegularExpression(pattern: string): Matcher {
  return pattern.startsWith('^') ? compileRegularExpression(pattern) : compileGlob(pattern);
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

function wholeMatcher(expression: string): Matcher {
  const compiled = RE2JS.compile(expression, RE2JS.DOTALL);
  return (text) => compiled.matches(text);
}
