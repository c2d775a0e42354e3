import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findUnclearWords } from '../scripts/unclear-words.ts';

/** `~` keeps the words from being found in this file. */
const wordsIn = (source: string) =>
  findUnclearWords(source.replaceAll('~', '')).map(({ line, found }) => `${line} ${found}`);

describe('findUnclearWords', () => {
  it('finds unclear words in comments and test titles, with their lines', () => {
    const source = [
      '/** Returns the user. */',
      'const a = 1; // some~body who waits',
      '/**',
      ' * Returns what can',
      ' * not be seen. W~ho is told comes first.',
      ' */',
      "it('answers who~ever asks', () => {});",
      "describe('W~ho is told', () => {});",
    ].join('\n');
    assert.deepEqual(wordsIn(source), ['2 somebody', '4 can not', '5 Who', '7 whoever', '8 Who']);
  });

  it('finds nothing in code, strings and clear sentences', () => {
    const source = [
      "const nobody = '// who~ever';",
      '/** Returns the users who are joined; those who left are absent. */',
      "it('rejects a join of a user who is banned with 403 M_FORBIDDEN', () => {});",
      'const address = "https://example.org/who";',
    ].join('\n');
    assert.deepEqual(wordsIn(source), []);
  });
});
