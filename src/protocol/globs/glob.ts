import { compileProgram, matchesWhole, matchesWords } from './glob-program.ts';
import { matchesGreedily } from './greedy-match.ts';
import { isWordBoundary } from './word-boundary.ts';

/** Whether a text matches a compiled glob. */
export type GlobMatcher = (text: string) => boolean;

/**
 * Maximum length in UTF-16 code units of patterns with wildcards and of patterns that are searched for in a text;
 * longer ones match nothing. The bound limits the steps for each character of the text: 33 in the automaton (1025 states in words
 * of 32 bits), 65 in the greedy search.
 */
export const MAX_GLOB_LENGTH = 1024;

/**
 * Maximum length of a pattern for the greedy search. For short patterns this search, though quadratic at worst, is
 * faster than the automaton. It needs no memory: server ACLs can have thousands of patterns.
 */
export const SHORT_GLOB_LENGTH = 64;
const WILDCARD = /[*?]/;

/** Whether a pattern is short and has no wildcards, so that a search for its occurrences is fast enough. */
export const isShortLiteral = (pattern: string): boolean =>
  pattern.length <= SHORT_GLOB_LENGTH && !WILDCARD.test(pattern);

const always: GlobMatcher = () => true;
const never: GlobMatcher = () => false;

/**
 * Compiles a case-sensitive glob that must match the entire text: `*` stands for any number of characters,
 * `?` for exactly one (a code point).
 * Source: appendices, "Glob-style matching".
 */
export function compileGlob(pattern: string): GlobMatcher {
  if (!WILDCARD.test(pattern)) return (text) => text === pattern;
  if (pattern.length > MAX_GLOB_LENGTH) return never;
  const simple = compileSimple(pattern);
  if (simple !== undefined) return simple;
  if (pattern.length <= SHORT_GLOB_LENGTH) return (text) => matchesGreedily(pattern, text);
  const program = compileProgram(pattern, 'wildcards');
  return (text) => matchesWhole(program, text);
}

/**
 * Compiles a pattern without `?` that has one `*`, or one `*` at each end: built-in string functions suffice for it.
 * Returns `undefined` for other patterns.
 */
function compileSimple(pattern: string): GlobMatcher | undefined {
  const parts = pattern.replace(/\*+/g, '*').split('*');
  if (pattern.includes('?')) return undefined;
  const [first = '', second = '', third = ''] = parts;
  if (parts.length === 2) {
    if (first === '' && second === '') return always;
    const minLength = first.length + second.length;
    return (text) => text.length >= minLength && text.startsWith(first) && text.endsWith(second);
  }
  if (parts.length === 3 && first === '' && third === '' && second.length <= SHORT_GLOB_LENGTH) {
    return (text) => text.includes(second);
  }
  return undefined;
}

/**
 * Compiles a case-sensitive glob that must match a substring that starts and ends at a word boundary.
 * Source: client-server API, "Push Rules", content-specific rules.
 */
export function compileWordGlob(pattern: string): GlobMatcher {
  if (!WILDCARD.test(pattern)) return compileWordLiteral(pattern);
  if (pattern.length > MAX_GLOB_LENGTH) return never;
  const program = compileProgram(pattern, 'wildcards');
  return (text) => matchesWords(program, text);
}

/** Like `compileWordGlob` for a literal: `*` and `?` stand for themselves. */
export function compileWordLiteral(literal: string): GlobMatcher {
  if (literal.length > MAX_GLOB_LENGTH) return never;
  if (literal.length <= SHORT_GLOB_LENGTH) return (text) => containsWord(text, literal);
  const program = compileProgram(literal, 'literal');
  return (text) => matchesWords(program, text);
}

/** Whether a text contains a literal between word boundaries, for literals that are used once. */
export const containsAsWords = (text: string, literal: string): boolean => compileWordLiteral(literal)(text);

/**
 * Whether a text contains a short literal between word boundaries; `containsAsWords` is for literals of any length.
 * @param mayContinue is called at each occurrence of the literal; when it returns false the search ends without a match
 */
export function containsWord(text: string, literal: string, mayContinue = always as () => boolean): boolean {
  let at = text.indexOf(literal);
  while (at !== -1 && mayContinue()) {
    if (isWordBoundary(text, at) && isWordBoundary(text, at + literal.length)) return true;
    at = text.indexOf(literal, at + 1);
  }
  return false;
}
