import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LoadOnce } from './load-once.ts';

/** A source whose loads run until the test ends them. */
function openSource() {
  const loads: PromiseWithResolvers<string>[] = [];
  const load = () => {
    const next = Promise.withResolvers<string>();
    loads.push(next);
    return next.promise;
  };
  return { loads, load };
}

describe('LoadOnce', () => {
  it('shares one load among concurrent callers of a key', async () => {
    const once = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const both = [once.run('a', load), once.run('a', load)];
    assert.equal(loads.length, 1);
    loads[0]!.resolve('found');
    assert.deepEqual(await Promise.all(both), ['found', 'found']);
  });

  it('runs loads of different keys at the same time', async () => {
    const once = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const [first, second] = [once.run('a', load), once.run('b', load)];
    loads[1]!.resolve('of b');
    assert.equal(await second, 'of b');
    loads[0]!.resolve('of a');
    assert.equal(await first, 'of a');
  });

  it('loads again for a caller that comes after the result', async () => {
    const once = new LoadOnce<string, number>();
    let loads = 0;
    const load = async () => ++loads;
    assert.deepEqual([await once.run('a', load), await once.run('a', load)], [1, 2]);
  });

  it('rejects all waiting callers when the load fails, and loads again for the next caller', async () => {
    const once = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const both = Promise.allSettled([once.run('a', load), once.run('a', load)]);
    loads[0]!.reject(new Error('the load failed'));
    assert.deepEqual(
      (await both).map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(await once.run('a', async () => 'found'), 'found');
  });

  it('remembers nothing of a load that throws before it returns a promise', async () => {
    const once = new LoadOnce<string, string>();
    const load = () => {
      throw new Error('the load failed');
    };
    assert.throws(() => once.run('a', load), /the load failed/);
    assert.equal(await once.run('a', async () => 'found'), 'found');
  });

  it('calls `keep` with the result once, before any caller receives it', async () => {
    const once = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const order: string[] = [];
    const keep = (value: string) => order.push(`keep ${value}`);
    const callers = ['first', 'second'].map((name) => once.run('a', load, keep).then(() => order.push(name)));
    loads[0]!.resolve('found');
    await Promise.all(callers);
    assert.deepEqual(order, ['keep found', 'first', 'second']);
  });

  it('loads again after forget, and keeps the result of the newer load only', async () => {
    const once = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const kept: string[] = [];
    const keep = (value: string) => kept.push(value);
    const old = once.run('a', load, keep);
    once.forget('a');
    const fresh = once.run('a', load, keep);
    loads[0]!.resolve('outdated');
    assert.equal(await old, 'outdated');
    assert.equal(once.get('a'), fresh);
    loads[1]!.resolve('fresh');
    assert.equal(await fresh, 'fresh');
    assert.deepEqual(kept, ['fresh']);
  });

  it('loads every key again after forgetAll', async () => {
    const once = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const all = [once.run('a', load), once.run('b', load)];
    once.forgetAll();
    assert.equal(once.size, 0);
    all.push(once.run('a', load));
    for (const { resolve } of loads) resolve('found');
    await Promise.all(all);
    assert.equal(loads.length, 3);
  });

  it('settled waits for all running loads, also for loads that start while it waits and for loads that fail', async () => {
    const once = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const first = once.run('a', load).then(() => once.run('b', load));
    let settled = false;
    const settling = once.settled().then(() => {
      settled = true;
    });
    loads[0]!.resolve('found');
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([settled, once.size], [false, 1]);
    loads[1]!.reject(new Error('the load failed'));
    await assert.rejects(first);
    await settling;
    assert.equal(once.size, 0);
  });
});
