import type { CodePoints } from './glob-program.ts';

const STAR = 0x2a;
const QUESTION_MARK = 0x3f;
const width = (codePoint: number): number => (codePoint > 0xffff ? 2 : 1);

/**
 * Whether a glob matches the entire text, without compiling it. A star takes as little as possible; after a
 * mismatch only the last star takes one more character. Compares each character of the text with each
 * character of the pattern at most once, so it is for short patterns.
 */
export function matchesGreedily(pattern: string, text: CodePoints): boolean {
  let at = 0;
  let position = 0;
  let afterStar = -1;
  let takenByStar = 0;
  while (position < text.length) {
    const symbol = pattern.codePointAt(at);
    const codePoint = text.codePointAt(position)!;
    if (symbol === STAR) {
      afterStar = ++at;
      takenByStar = position;
    } else if (symbol === codePoint || symbol === QUESTION_MARK) {
      at += width(symbol);
      position += width(codePoint);
    } else if (afterStar !== -1) {
      takenByStar += width(text.codePointAt(takenByStar)!);
      position = takenByStar;
      at = afterStar;
    } else {
      return false;
    }
  }
  while (pattern.codePointAt(at) === STAR) at++;
  return at === pattern.length;
}
