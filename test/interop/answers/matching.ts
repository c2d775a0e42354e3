import type { FoundDifference } from './comparison.ts';
import type { ExpectedDifference } from './expected/expected-difference.ts';

/** Whether the expected difference describes the found difference. */
export function isExpected(
  { requests, at, hearth, reference }: ExpectedDifference,
  difference: FoundDifference,
): boolean {
  return (
    matches(requests, difference.request) &&
    matches(at, difference.at) &&
    (hearth === undefined || matches([hearth], difference.hearth)) &&
    (reference === undefined || matches([reference], difference.reference))
  );
}

/** Returns the patterns that match no found difference; differences that depend on time need not occur. */
export function unmatched(
  expected: readonly ExpectedDifference[],
  found: readonly FoundDifference[],
): string[] {
  return expected.flatMap((entry) => {
    if (entry.dependsOnTime) return [];
    const isMatched = (part: Partial<ExpectedDifference>) =>
      found.some((difference) => isExpected({ ...entry, ...part }, difference));
    const patterns = [
      ...entry.requests.filter((request) => !isMatched({ requests: [request] })),
      ...entry.at.filter((at) => !isMatched({ at: [at] })),
    ];
    return patterns.map((pattern) => `${pattern}: ${entry.what}`);
  });
}

/** Returns whether one of the patterns matches the whole text. In patterns, `*` stands for any text. */
function matches(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) => {
    const [first = '', ...rest] = pattern.split('*');
    if (rest.length === 0) return text === pattern;
    if (!text.startsWith(first)) return false;
    let from = first.length;
    for (const piece of rest.slice(0, -1)) {
      const index = text.indexOf(piece, from);
      if (index < 0) return false;
      from = index + piece.length;
    }
    const last = rest.at(-1) ?? '';
    return text.length - last.length >= from && text.endsWith(last);
  });
}
