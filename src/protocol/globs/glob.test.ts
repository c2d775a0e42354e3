import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { codePoint } from '../../../test/support/inputs/code-point.ts';
import { foldCase } from './fold-case.ts';
import { compileGlob, compileWordGlob, compileWordLiteral, MAX_GLOB_LENGTH } from './glob.ts';
import { compileProgram, matchesWhole } from './glob-program.ts';
import { matchesGreedily } from './greedy-match.ts';

/** Matches a glob by its definition, with exponential backtracking. */
function naive(pattern: readonly string[], text: readonly string[]): boolean {
  const [symbol, ...rest] = pattern;
  if (symbol === undefined) return text.length === 0;
  if (symbol === '*') return naive(rest, text) || (text.length > 0 && naive(pattern, text.slice(1)));
  return text.length > 0 && (symbol === '?' || symbol === text[0]) && naive(rest, text.slice(1));
}

const isWord = (character: string | undefined) => character !== undefined && /[A-Za-z0-9_]/.test(character);

/** Tries every substring between two word boundaries. */
function naiveWords(pattern: string, text: string): boolean {
  const characters = [...text];
  const boundaries = [...characters, undefined].flatMap((character, i) =>
    isWord(character) && isWord(characters[i - 1]) ? [] : [i],
  );
  return boundaries.some((from) =>
    boundaries.some((to) => to >= from && naive([...pattern], characters.slice(from, to))),
  );
}

const smallText = fc.string({ unit: fc.constantFrom('a', 'b', '_', ' ', '😀', 'é'), maxLength: 9 });
const smallPattern = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '😀', '*', '?'), maxLength: 7 });

describe('compileGlob', () => {
  const cases: [pattern: string, text: string, expected: boolean][] = [
    ['', '', true],
    ['', 'a', false],
    ['*', '', true],
    ['***', 'anything', true],
    ['?', '', false],
    ['?', '😀', true],
    ['??', '😀', false],
    ['lunc?*', 'Lunch plans', false],
    ['lunc?*', 'lunch plans', true],
    ['lunc?*', 'lunch', true],
    ['lunc?*', ' lunch', false],
    ['a*b', 'ab', true],
    ['a*ba', 'aba', true],
    ['ab*ba', 'aba', false],
    ['*middle*', 'in the middle of', true],
    ['*.example.org', 'example.org', false],
    ['*.example.org', 'a.b.example.org', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-b-b-', false],
    ['[a-z]+', 'a', false],
    ['[a-z]+', '[a-z]+', true],
    ['a.c', 'abc', false],
  ];
  for (const [pattern, text, expected] of cases) {
    it(`${expected ? 'matches' : 'does not match'} the pattern ${JSON.stringify(pattern)} against ${JSON.stringify(text)}`, () => {
      assert.equal(compileGlob(pattern)(text), expected);
    });
  }

  it('compileGlob agrees with a naive implementation', () => {
    fc.assert(
      fc.property(smallPattern, smallText, (pattern, text) => {
        assert.equal(compileGlob(pattern)(text), naive([...pattern], [...text]));
      }),
      { numRuns: 5000 },
    );
  });

  it('compileProgram and matchesGreedily agree with a naive implementation', () => {
    fc.assert(
      fc.property(smallPattern, smallText, (pattern, text) => {
        const expected = naive([...pattern], [...text]);
        assert.equal(matchesGreedily(pattern, text), expected);
        assert.equal(matchesWhole(compileProgram(pattern, 'wildcards'), text), expected);
      }),
      { numRuns: 5000 },
    );
  });

  it('matches patterns of more than 32 symbols, whose states need several 32-bit words', () => {
    const part = fc.constantFrom('a', 'b', 'ab', '?', '*');
    fc.assert(
      fc.property(fc.array(part, { minLength: 30, maxLength: 200 }), (parts) => {
        const text = parts.join('').replaceAll('?', 'x').replaceAll('*', 'yyy');
        assert.equal(compileGlob(parts.join(''))(text), true);
        assert.equal(compileGlob(`${parts.join('')}z`)(text), false);
      }),
    );
  });

  it('compares literals of any length, and matches nothing for patterns with wildcards that are longer than MAX_GLOB_LENGTH', () => {
    const long = 'x'.repeat(MAX_GLOB_LENGTH + 1);
    assert.equal(compileGlob(long)(long), true);
    assert.equal(compileGlob(`*${long}`)(long), false);
  });
});

describe('compileWordGlob', () => {
  const cases: [pattern: string, text: string, expected: boolean][] = [
    ['ex*ple', 'An example event.', true],
    ['ex*ple', 'exple', true],
    ['ex*ple', 'An exciting triple-whammy', true],
    ['ex*ple', 'An examples event.', false],
    ['cake', 'cakes', false],
    ['cake', 'pancake', false],
    ['cake', 'a cake_', false],
    ['cake', 'a pancake, a cake!', true],
    ['cake', 'ökakecake', false],
    ['cake', 'écake', true],
    ['@room', 'hello @room', true],
    ['@room', 'hello@room', true],
    ['@room', '@roommate', false],
    ['*', '', true],
    ['c?ke', 'the cake.', true],
    ['c?ke', 'the cake2', false],
  ];
  for (const [pattern, text, expected] of cases) {
    it(`${expected ? 'finds' : 'does not find'} the pattern ${JSON.stringify(pattern)} in ${JSON.stringify(text)}`, () => {
      assert.equal(compileWordGlob(pattern)(text), expected);
    });
  }

  it('compileWordGlob agrees with a naive implementation', () => {
    fc.assert(
      fc.property(smallPattern, smallText, (pattern, text) => {
        assert.equal(compileWordGlob(pattern)(text), naiveWords(pattern, text));
      }),
      { numRuns: 5000 },
    );
  });

  it('finds long literals like short ones, and nothing for patterns that are longer than MAX_GLOB_LENGTH', () => {
    const long = 'word '.repeat(50).trim();
    assert.equal(compileWordGlob(long)(`a ${long}.`), true);
    assert.equal(compileWordGlob(long)(`a ${long}s`), false);
    assert.equal(compileWordGlob('x'.repeat(MAX_GLOB_LENGTH + 1))('x'.repeat(MAX_GLOB_LENGTH + 1)), false);
    assert.equal(compileWordGlob(`*${'x'.repeat(MAX_GLOB_LENGTH)}`)('x'.repeat(MAX_GLOB_LENGTH)), false);
  });
});

describe('compileWordLiteral', () => {
  it('takes wildcards literally in short and long literals', () => {
    const long = '*'.repeat(100);
    assert.equal(compileWordLiteral('*a?')('I am *a?'), true);
    assert.equal(compileWordLiteral('*a?')('I am ba!'), false);
    assert.equal(compileWordLiteral(long)(`<${long}>`), true);
    assert.equal(compileWordLiteral(long)('anything'), false);
  });
});

describe('foldCase', () => {
  const pairs: [pattern: string, text: string][] = [
    ['CAKE', 'cake'],
    ['Ärger', 'äRGER'],
    ['ΟΔΟΣ', 'οδος'],
    ['οδοσ*', 'ΟΔΟΣ ΟΔΟΣ'],
    ['İ', 'İ'],
  ];
  for (const [pattern, text] of pairs) {
    it(`makes ${pattern} match ${text}`, () =>
      assert.equal(compileGlob(foldCase(pattern))(foldCase(text)), true));
  }

  it('keeps lengths and word boundaries for every code point', () => {
    for (let codePoint = 0; codePoint <= 0x10ffff; codePoint++) {
      const character = String.fromCodePoint(codePoint);
      const folded = foldCase(character);
      if (folded.length !== character.length || isWord(folded) !== isWord(character)) {
        assert.fail(`U+${codePoint.toString(16)} becomes ${JSON.stringify(folded)}`);
      }
    }
  });

  it('is idempotent', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint }), (text) => {
        assert.equal(foldCase(foldCase(text)), foldCase(text));
      }),
    );
  });
});
