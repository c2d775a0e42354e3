/**
 * Characters that are left as they are: their lower case is longer (U+0130) or an ASCII letter (U+212A, the
 * Kelvin sign).
 */
const LEFT_AS_THEY_ARE = /[\u0130\u212a]/;
const RUNS_TO_LOWER = /[^\u0130\u212a]+/g;

/**
 * Folds case for comparison. Keeps the length of the text and the positions of its ASCII word characters, so that a word
 * boundary in the folded text is one in the original. The specification leaves the exact meaning of
 * "case-insensitive" to the server.
 */
export function foldCase(text: string): string {
  const lower = LEFT_AS_THEY_ARE.test(text)
    ? text.replace(RUNS_TO_LOWER, (run) => run.toLowerCase())
    : text.toLowerCase();
  // `toLowerCase` picks one of the two small sigmas by its position in the word, so a pattern and a text
  // would differ.
  return lower.replaceAll('ς', 'σ');
}
