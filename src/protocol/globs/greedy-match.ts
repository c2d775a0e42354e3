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
  let patternIndex = 0;
  let textIndex = 0;
  let indexAfterStar = -1;
  let starMatchEnd = 0;
  while (textIndex < text.length) {
    const symbol = pattern.codePointAt(patternIndex);
    const codePoint = text.codePointAt(textIndex)!;
    if (symbol === STAR) {
      indexAfterStar = ++patternIndex;
      starMatchEnd = textIndex;
    } else if (symbol === codePoint || symbol === QUESTION_MARK) {
      patternIndex += width(symbol);
      textIndex += width(codePoint);
    } else if (indexAfterStar !== -1) {
      starMatchEnd += width(text.codePointAt(starMatchEnd)!);
      textIndex = starMatchEnd;
      patternIndex = indexAfterStar;
    } else {
      return false;
    }
  }
  while (pattern.codePointAt(patternIndex) === STAR) patternIndex++;
  return patternIndex === pattern.length;
}
