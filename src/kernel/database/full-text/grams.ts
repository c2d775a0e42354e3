/**
 * Makes text searchable in the same way on every database: folds it, splits it into runs, and the runs into
 * grams that an index can store. See docs/decisions/0020.
 */

/**
 * A sequence of word characters. It is `compact` in scripts that are written without spaces, and when it consists of
 * symbols.
 */
interface Run {
  readonly text: string;
  readonly compact: boolean;
}

/** Maximum characters of a text that are indexed; later characters cannot be found. */
export const maxCharacters = 20_000;

/** Maximum runs of a query; further ones are ignored. */
const maxRuns = 32;

const compactScripts = 'Han Hira Kana Hang Thai Laoo Khmr Mymr Tibt'
  .split(' ')
  .map((script) => `\\p{scx=${script}}`)
  .join('');
const wordCharacters = '[\\p{L}\\p{N}\\p{M}]';
const runs = new RegExp(
  `(?<compact>[[[${compactScripts}]&&${wordCharacters}]\\p{So}]+)|[${wordCharacters}--[${compactScripts}]]+`,
  'gv',
);
const accents = /([\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}])\p{Mn}+/gu;

/**
 * Matches ASCII text. Such text does not need the rules of Unicode: without them, the same grams take a third of the
 * time.
 */
const plain = /^[\0-\x7f]*$/;
const plainWords = /[a-z0-9]+/g;

/**
 * Removes differences that users do not type in searches: case, accents, and the width of characters. Cuts texts longer
 * than `maxCharacters`.
 */
export function foldText(text: string): string {
  const start = text.slice(0, maxCharacters);
  if (plain.test(start)) return start.toLowerCase();
  const folded = start.normalize('NFKC').toLowerCase();
  return folded.normalize('NFD').replace(accents, '$1').normalize('NFC');
}

/** Returns the grams of a text: a search finds the text when these include all grams of its query. */
export function gramsOf(text: string): Set<string> {
  const grams = new Set<string>();
  const folded = foldText(text);
  if (plain.test(folded)) {
    for (const word of folded.match(plainWords) ?? []) addPlainWord(grams, word);
    return grams;
  }
  for (const run of runsOf(folded)) {
    const characters = [...run.text];
    if (run.compact) {
      for (const [index, character] of characters.entries()) {
        grams.add(character);
        if (index > 0) grams.add(characters[index - 1] + character);
      }
      continue;
    }
    // A query of one or two characters finds the words that begin with it.
    grams.add(characters[0]!);
    if (characters.length > 1) grams.add(characters[0]! + characters[1]!);
    addWindows(grams, characters, 3);
  }
  return grams;
}

/** A search term. All of its runs must occur in a text. */
export class TextQuery {
  /** Grams that every matching text contains. */
  readonly grams: ReadonlySet<string>;
  readonly #runs: readonly Run[];

  constructor(term: string) {
    this.#runs = runsOf(foldText(term)).slice(0, maxRuns);
    const grams = new Set<string>();
    for (const { text, compact } of this.#runs) {
      const characters = [...text];
      const size = compact ? 2 : 3;
      if (characters.length < size) grams.add(text);
      else addWindows(grams, characters, size);
    }
    this.grams = grams;
  }

  /** Whether the query contains no runs. Then nothing matches. */
  get isEmpty(): boolean {
    return this.#runs.length === 0;
  }

  /**
   * Whether a text contains all runs. A run of one or two characters that is not compact must be at the beginning of a
   * word; other runs may be anywhere.
   */
  matches(text: string): boolean {
    return this.matchesFolded(foldText(text));
  }

  /** Like `matches`. @param folded the result of `foldText` */
  matchesFolded(folded: string): boolean {
    if (this.isEmpty) return false;
    let words: readonly Run[] | undefined;
    return this.#runs.every((run) => {
      if (run.compact || [...run.text].length >= 3) return folded.includes(run.text);
      words ??= runsOf(folded);
      return words.some((word) => !word.compact && word.text.startsWith(run.text));
    });
  }
}

function runsOf(folded: string): Run[] {
  const found: Run[] = [];
  for (const { 0: text, groups } of folded.matchAll(runs)) {
    found.push({ text, compact: groups?.['compact'] !== undefined });
  }
  return found;
}

/** Adds the grams of a word in which every UTF-16 code unit is a character. */
function addPlainWord(grams: Set<string>, word: string): void {
  grams.add(word.slice(0, 1));
  if (word.length > 1) grams.add(word.slice(0, 2));
  for (let end = 3; end <= word.length; end++) grams.add(word.slice(end - 3, end));
}

/** Adds every piece of `size` adjacent characters. */
function addWindows(grams: Set<string>, characters: readonly string[], size: number): void {
  for (let end = size; end <= characters.length; end++) grams.add(characters.slice(end - size, end).join(''));
}
