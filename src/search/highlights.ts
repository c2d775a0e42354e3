import { foldText } from '../kernel/database/index.ts';

/** Maximum characters of the words of results that are compared with the search term. */
const maxCompared = 20_000;

/** Maximum number of highlighted words that are only in results, not in the search term. */
const maxFound = 50;

/** Matches ASCII text: there, a word differs from the folded word at most by case. */
const asciiText = /^[\0-\x7f]*$/;

const wordPattern = /[\p{L}\p{N}\p{M}]+/gu;

const wordsOf = (text: string): readonly string[] => text.match(wordPattern) ?? [];

/**
 * Returns the words that clients highlight: the words of the search term, as written and as folded for the index, and
 * words of the results that match them with another spelling. A client finds a word in the text without regard to case,
 * but does not ignore accents.
 * Source: client-server API, `POST /search`, `highlights`.
 * @param texts the texts of the results
 */
export function highlightsOf(term: string, texts: readonly string[]): string[] {
  const folded = wordsOf(foldText(term));
  const found = new Set<string>();
  for (const word of differingWords(texts)) {
    const lower = word.toLowerCase();
    const foldedWord = foldText(word);
    if (found.size === maxFound) break;
    if (foldedWord !== lower && folded.some((searched) => foldedWord.includes(searched))) found.add(lower);
  }
  return [...new Set([...folded, ...wordsOf(term.toLowerCase()), ...found])];
}

/** Returns words that may differ from their folded form by more than case, each once. */
function differingWords(texts: readonly string[]): Set<string> {
  const words = new Set<string>();
  let compared = 0;
  for (const text of texts) {
    if (asciiText.test(text)) continue;
    for (const [word] of text.matchAll(wordPattern)) {
      compared += word.length;
      if (compared > maxCompared) return words;
      if (!asciiText.test(word)) words.add(word);
    }
  }
  return words;
}
