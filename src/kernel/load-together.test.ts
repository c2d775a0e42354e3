import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LoadTogether } from './load-together.ts';

/**
 * Returns a LoadTogether that loads the lengths of keys, and the keys of each call of its load. The key `none` has no
 * value, and the key `error` makes the load fail.
 */
function lengths() {
  const loads: (readonly string[])[] = [];
  const together = new LoadTogether<string, number>(async (keys) => {
    loads.push(keys);
    if (keys.includes('error')) throw new Error('the load failed');
    return new Map(keys.filter((key) => key !== 'none').map((key) => [key, key.length]));
  });
  return { loads, together };
}

describe('LoadTogether', () => {
  it('loads each key once with one call, also keys that are requested a few microtasks later', async () => {
    const { loads, together } = lengths();
    const later = async () => {
      for (let index = 0; index < 10; index++) await undefined;
      return together.get('later');
    };
    const values = await Promise.all([
      together.get('one'),
      later(),
      together.get('one'),
      together.get('none'),
    ]);
    assert.deepEqual(values, [3, 5, 3, undefined]);
    assert.deepEqual(loads, [['one', 'none', 'later']]);
  });

  it('loads the keys of several callers with one call, and uses another call when one call would have too many keys', async () => {
    const { loads, together } = lengths();
    const many = Array.from({ length: 499 }, (_, index) => `key ${index}`);
    const [first, second] = await Promise.all([
      together.getMany(['one', 'none']),
      together.getMany(many),
      together.getMany(['more']),
    ]);
    assert.deepEqual([first.get('one'), first.get('none'), second.get('key 7')], [3, undefined, 5]);
    assert.deepEqual(
      loads.map((keys) => keys.length),
      [2, 500],
    );
  });

  it('loads a key again for a caller that comes after the result', async () => {
    const { loads, together } = lengths();
    await together.get('one');
    await together.get('one');
    assert.deepEqual(loads, [['one'], ['one']]);
  });

  it('rejects all waiting callers when the load fails, and loads again for the next caller', async () => {
    const { together } = lengths();
    const both = await Promise.allSettled([together.get('error'), together.get('one')]);
    assert.deepEqual(
      both.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(await together.get('one'), 3);
  });
});
