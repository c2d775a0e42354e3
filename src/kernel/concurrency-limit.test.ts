import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ConcurrencyLimit } from './concurrency-limit.ts';

it('ConcurrencyLimit runs tasks in order, a bounded number at once, queues a bounded number, and returns undefined for further tasks', async () => {
  const limit = new ConcurrencyLimit(2, 3);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const outcomes = Array.from({ length: 7 }, (_, index) =>
    limit.run(async () => {
      begun.push(index);
      await new Promise<void>((resolve) => ends.push(resolve));
      return index;
    }),
  );
  assert.deepEqual(await Promise.all(outcomes.slice(5)), [undefined, undefined]);
  assert.deepEqual(begun, [0, 1]);
  for (let done = 0; done < 5; done++) {
    ends[done]!();
    assert.equal(await outcomes[done], done);
  }
  assert.deepEqual(begun, [0, 1, 2, 3, 4]);
});

it('ConcurrencyLimit frees the slot of a failed task', async () => {
  const limit = new ConcurrencyLimit(1, 1);
  await assert.rejects(
    limit.run(() => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.equal(await limit.run(async () => 'yes'), 'yes');
});
