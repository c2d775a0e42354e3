import { foldText } from '../kernel/database/index.ts';

/** Words that are highlighted because of what was found, beyond those that were searched for. */
const maxFound = 50;

const wordsOf = (text: string): readonly string[] => text.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];

/**
 * The words that clients highlight: those that were searched for, as they were written and as they are looked up, and
 * those that were found by it though they are written otherwise. Clients look for them in the text, without regard to
 * case, and know nothing of accents that do not matter here.
 * Source: client-server API, `POST /search`, `highlights`.
 * @param texts that match
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
