import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_GLOB_LENGTH, SHORT_GLOB_LENGTH } from './glob.ts';
import { type CodePoints, compileProgram, matchesWhole, matchesWords } from './glob-program.ts';
import { matchesGreedily } from './greedy-match.ts';

/** A text that counts how many of its characters are read. */
class CountingText implements CodePoints {
  readonly #text: string;
  reads = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get length(): number {
    return this.#text.length;
  }

  codePointAt(position: number): number | undefined {
    this.reads++;
    return this.#text.codePointAt(position);
  }
}

describe('matching of hostile patterns', () => {
  const text = 'a'.repeat(65_536);
  const patterns = {
    'alternating stars': '*a'.repeat(MAX_GLOB_LENGTH / 2 - 1).concat('*b'),
    'only stars': '*'.repeat(MAX_GLOB_LENGTH),
    'question marks': '?'.repeat(MAX_GLOB_LENGTH),
    'stars and question marks': '*?'.repeat(MAX_GLOB_LENGTH / 2),
    'a long run that almost fits': `*${'a'.repeat(MAX_GLOB_LENGTH - 2)}b`,
    'a run between stars': `*${'a?'.repeat(MAX_GLOB_LENGTH / 2 - 2)}b*`,
  };
  for (const [name, pattern] of Object.entries(patterns)) {
    it(`reads each character at most once, and updates at most ${MAX_GLOB_LENGTH / 32 + 1} 32-bit words for each: ${name}`, () => {
      const program = compileProgram(pattern, 'wildcards');
      assert.ok(program.wordCount <= MAX_GLOB_LENGTH / 32 + 1);
      for (const matches of [matchesWhole, matchesWords]) {
        const counting = new CountingText(text);
        matches(program, counting);
        assert.ok(counting.reads <= text.length, `${matches.name} read ${counting.reads} characters`);
      }
    });
  }

  it('stops reading when the rest of the text can no longer match', () => {
    const counting = new CountingText(text);
    assert.equal(matchesWhole(compileProgram('ab*', 'wildcards'), counting), false);
    assert.equal(counting.reads, 2);
  });

  const half = SHORT_GLOB_LENGTH / 2;
  const shortPatterns = {
    'alternating stars': `${'*a'.repeat(half - 1)}*b`,
    'a long run that almost fits': `*${'a'.repeat(SHORT_GLOB_LENGTH - 2)}b`,
    'a run of question marks': `*${'?'.repeat(SHORT_GLOB_LENGTH - 3)}b*`,
    'only stars': '*'.repeat(SHORT_GLOB_LENGTH),
  };
  for (const [name, pattern] of Object.entries(shortPatterns)) {
    it(`reads each character at most ${2 * SHORT_GLOB_LENGTH} times for short patterns: ${name}`, () => {
      const counting = new CountingText(text);
      matchesGreedily(pattern, counting);
      assert.ok(counting.reads <= 2 * SHORT_GLOB_LENGTH * text.length, `${counting.reads} reads`);
    });
  }
});
