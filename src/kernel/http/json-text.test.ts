import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { TimeSlices } from '../time-slices.ts';
import { hasManyEntries, jsonInSlices } from './json-text.ts';

const list = (length: number, element: unknown) => Array.from({ length }, () => element);

/**
 * Writes a value. A second passes between two reads of the clock, so that each time slice is over when its end is
 * checked.
 * @returns the text, and how often the clock was read
 */
async function write(value: unknown) {
  let readings = 0;
  const slices = new TimeSlices({ ...manualClock(), monotonic: () => ++readings * 1_000 });
  return { text: String(await jsonInSlices(value, slices)), readings };
}

describe('JSON texts of long values (jsonInSlices)', () => {
  it('writes the same text as JSON.stringify', async () => {
    const values = [
      { chunk: list(40, { content: { body: 'é"\n' }, unset: undefined }), end: undefined },
      list(40, undefined),
      list(40, null),
      { nested: { deeper: { results: [list(33, 1), { events: list(50, 'x') }] } } },
      Object.fromEntries(list(50, 0).map((_, index) => [`key ${index}`, index % 3 ? index : undefined])),
      Object.fromEntries(list(50, 0).map((_, index) => [`key ${index}`, undefined])),
      {
        at: new Date(0),
        dates: list(32, new Date(0)),
        none: [],
        nothing: {},
        numbers: [Number.NaN, -0, 1e30],
      },
      'text',
      null,
    ];
    for (const value of values) {
      const { text } = await write(value);
      assert.equal(text, JSON.stringify(value));
    }
  });

  it('lets other work run after each large event of a list that is nested in other lists and objects, but not after each small one', async () => {
    const event = { content: { body: 'x'.repeat(60_000) } };
    const { readings: few } = await write({ chunk: list(40, { content: {} }) });
    const { readings: many } = await write({ rooms: [{ state: list(40, event) }] });
    assert.ok(few <= 3, `${few} readings`);
    assert.ok(many >= 40, `${many} readings`);
  });

  it('distinguishes values with many entries from short values', () => {
    assert.equal(hasManyEntries({ chunk: list(10, { content: { body: 'text' } }), start: 's1' }), false);
    assert.equal(hasManyEntries({ chunk: list(100, {}) }), true);
    assert.equal(hasManyEntries({ a: { b: { c: list(100, 1) } } }), true);
    assert.equal(hasManyEntries(undefined), false);
  });
});
