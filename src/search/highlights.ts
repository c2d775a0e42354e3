import { foldText } from '../kernel/database/index.ts';

/** Maximum number of highlighted words that are only in results, not in the search term. */
const maxFound = 50;

const wordsOf = (text: string): readonly string[] => text.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];

/**
 * Returns the words that clients highlight: the words of the search term, as written and as folded for the index, and
 * words of the results that match them with another spelling. A client finds a word in the text without regard to case,
 * but does not ignore accents.
 * Source: client-server API, `POST /search`, `highlights`.
 * @param texts of the results
 */
export function highlightsOf(term: string, texts: readonly string[]): string[] {
  const folded = wordsOf(foldText(term));
  const found = new Set<string>();
  for (const word of texts.flatMap(wordsOf)) {
    const lower = word.toLowerCase();
    const plain = foldText(word);
    if (found.size === maxFound) break;
    if (plain !== lower && folded.some((searched) => plain.includes(searched))) found.add(lower);
  }
  return [...new Set([...folded, ...wordsOf(term.toLowerCase()), ...found])];
}
