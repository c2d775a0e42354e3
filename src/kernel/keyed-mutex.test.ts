import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KeyedMutex } from './keyed-mutex.ts';

/** A task that runs until the test ends it. */
function openTask() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  return { run: () => promise, end: () => resolve('done'), fail: () => reject(new Error('the task failed')) };
}

describe('KeyedMutex', () => {
  it('runs tasks of one key one after the other and tasks of different keys at the same time', async () => {
    const mutex = new KeyedMutex();
    const order: string[] = [];
    const [first, other] = [openTask(), openTask()];
    const results = [
      mutex.run('a', first.run).then(() => order.push('a1')),
      mutex.run('a', async () => 'done').then(() => order.push('a2')),
      mutex.run('b', other.run).then(() => order.push('b')),
    ];
    other.end();
    await results[2];
    first.end();
    await Promise.all(results);
    assert.deepEqual(order, ['b', 'a1', 'a2']);
  });

  it('starts tasks of one key in the order of the calls, and never two at once', async () => {
    const mutex = new KeyedMutex();
    const order: number[] = [];
    let running = 0;
    let maxRunning = 0;
    const task = (number: number) => async () => {
      order.push(number);
      maxRunning = Math.max(maxRunning, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
    };
    await Promise.all([1, 2, 3, 4, 5].map((number) => mutex.run('key', task(number))));
    assert.deepEqual([order, maxRunning], [[1, 2, 3, 4, 5], 1]);
  });

  it('rejects with the error of the task and still runs the next task', async () => {
    const mutex = new KeyedMutex();
    const first = openTask();
    const failing = mutex.run('a', first.run);
    const next = mutex.run('a', async () => 'next');
    first.fail();
    await assert.rejects(failing, /the task failed/);
    assert.equal(await next, 'next');
  });

  it('rejects when the task throws before it returns a promise', async () => {
    const mutex = new KeyedMutex();
    const failing = mutex.run('a', () => {
      throw new Error('the task failed');
    });
    await assert.rejects(failing, /the task failed/);
    assert.equal(await mutex.run('a', async () => 'next'), 'next');
  });

  it('counts the tasks of a key that run or wait', async () => {
    const mutex = new KeyedMutex();
    const first = openTask();
    const results = [mutex.run('a', first.run), mutex.run('a', async () => 'x')];
    assert.deepEqual([mutex.pending('a'), mutex.pending('b')], [2, 0]);
    first.end();
    await Promise.all(results);
    assert.equal(mutex.pending('a'), 0);
  });

  it('forgets a key when its last task has settled', async () => {
    const mutex = new KeyedMutex();
    const first = openTask();
    const results = [
      mutex.run('a', first.run),
      mutex.run('a', async () => 'x'),
      mutex.run('b', async () => 'y'),
    ];
    assert.equal(mutex.size, 2);
    first.fail();
    await Promise.allSettled(results);
    assert.equal(mutex.size, 0);
  });
});
