import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Turns } from './turns.ts';

/** Work that ends when it is told to. */
function held() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  return { work: () => promise, end: () => resolve('done'), fail: () => reject(new Error('as it was told')) };
}

it('work on one thing is done in turn, on several at once', async () => {
  const turns = new Turns(10);
  const order: string[] = [];
  const [first, other] = [held(), held()];
  const all = [
    turns.take('a', first.work).then(() => order.push('a1')),
    turns.take('a', async () => 'done').then(() => order.push('a2')),
    turns.take('b', other.work).then(() => order.push('b')),
  ];
  other.end();
  await all[2];
  first.end();
  await Promise.all(all);
  assert.deepEqual(order, ['b', 'a1', 'a2']);
});

it('a failure is its own, and the next has its turn', async () => {
  const turns = new Turns(10);
  const first = held();
  const failing = turns.take('a', first.work);
  const next = turns.take('a', async () => 'next');
  first.fail();
  await assert.rejects(failing, /as it was told/);
  assert.equal(await next, 'next');
});

it('so many wait and no more', async () => {
  const turns = new Turns(2);
  const first = held();
  const waiting = [turns.take('a', first.work), turns.take('a', async () => 'x')];
  await assert.rejects(
    turns.take('a', async () => 'y'),
    { reason: 'busy' },
  );
  assert.equal(await turns.take('b', async () => 'z'), 'z');
  first.end();
  await Promise.all(waiting);
  assert.equal(await turns.take('a', async () => 'again'), 'again');
});
