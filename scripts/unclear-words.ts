/** A word or phrase in a comment or a test title that readers stumble over. */
export interface UnclearWord {
  /** From 1. */
  readonly line: number;
  /** The word or phrase, in one line. */
  readonly found: string;
  /** What to write instead. */
  readonly instead: string;
}

const nameTheNoun = 'name the user, server, client or caller';

/** Whole words, in upper or lower case, and what to write instead. */
const rules: readonly (readonly [RegExp, string])[] = [
  [/\b(?:whoever|whomever|nobody|somebody|anybody|everybody)\b/gi, nameTheNoun],
  [/(?<=^\s*|[.;:]\s+)(?:who|whom|whose|what was)\b/gim, nameTheNoun],
  [/\bcan\s+not\b/gi, 'write "cannot"'],
  [/\bat\s+the\s+most\b/gi, 'write "at most"'],
  [/\b(?:in vain|anew)\b/gi, 'say what failed, or write "again"'],
  [/\bthat of which\b|\bof those of\b|\bthose of whom\b|\bto whom nothing\b/gi, 'say it in two sentences'],
  [/\bgoes along\b|\bhas come to be\b/gi, 'say what happens'],
  [/\b(?:TODO|FIXME|XXX)\b/g, 'do it, or file an issue'],
];

const comment = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm;
/** Matches the call of a test or suite up to the end of its title. */
const title =
  /\b(?:test|it|describe|suite)\(\s*(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)/g;

/** Marks before the words of a comment or title. */
const marks = /^(?:\s*(?:\/\*\*?|\*|\/\/) ?|\w+\(\s*['"`])/gm;

/** Finds unclear words in the comments and test titles of a TypeScript source. */
export function findUnclearWords(source: string): UnclearWord[] {
  const found: UnclearWord[] = [];
  for (const part of [comment, title]) {
    for (const { 0: whole, index } of source.matchAll(part)) {
      const text = whole.replace(marks, (mark) => ' '.repeat(mark.length));
      for (const [word, instead] of rules) {
        for (const match of text.matchAll(word)) {
          const line = source.slice(0, index + match.index).split('\n').length;
          found.push({ line, found: match[0].replace(/\s+/g, ' '), instead });
        }
      }
    }
  }
  return found.sort((a, b) => a.line - b.line);
}
