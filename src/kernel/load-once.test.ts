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
    const loadOnce = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const both = [loadOnce.run('a', load), loadOnce.run('a', load)];
    assert.equal(loads.length, 1);
    loads[0]!.resolve('found');
    assert.deepEqual(await Promise.all(both), ['found', 'found']);
  });

  it('runs loads of different keys at the same time', async () => {
    const loadOnce = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const [first, second] = [loadOnce.run('a', load), loadOnce.run('b', load)];
    loads[1]!.resolve('of b');
    assert.equal(await second, 'of b');
    loads[0]!.resolve('of a');
    assert.equal(await first, 'of a');
  });

  it('loads again for a caller that comes after the result', async () => {
    const loadOnce = new LoadOnce<string, number>();
    let loads = 0;
    const load = async () => ++loads;
    assert.deepEqual([await loadOnce.run('a', load), await loadOnce.run('a', load)], [1, 2]);
  });

  it('rejects all waiting callers when the load fails, and loads again for the next caller', async () => {
    const loadOnce = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const both = Promise.allSettled([loadOnce.run('a', load), loadOnce.run('a', load)]);
    loads[0]!.reject(new Error('the load failed'));
    assert.deepEqual(
      (await both).map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(await loadOnce.run('a', async () => 'found'), 'found');
  });

  it('remembers nothing of a load that throws before it returns a promise', async () => {
    const loadOnce = new LoadOnce<string, string>();
    const load = () => {
      throw new Error('the load failed');
    };
    assert.throws(() => loadOnce.run('a', load), /the load failed/);
    assert.equal(await loadOnce.run('a', async () => 'found'), 'found');
  });

  it('calls `keep` with the result once, before any caller receives it', async () => {
    const loadOnce = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const order: string[] = [];
    const keep = (value: string) => order.push(`keep ${value}`);
    const callers = ['first', 'second'].map((name) =>
      loadOnce.run('a', load, keep).then(() => order.push(name)),
    );
    loads[0]!.resolve('found');
    await Promise.all(callers);
    assert.deepEqual(order, ['keep found', 'first', 'second']);
  });

  it('loads again after forget(), and keeps the result of the newer load only', async () => {
    const loadOnce = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const kept: string[] = [];
    const keep = (value: string) => kept.push(value);
    const old = loadOnce.run('a', load, keep);
    loadOnce.forget('a');
    const fresh = loadOnce.run('a', load, keep);
    loads[0]!.resolve('outdated');
    assert.equal(await old, 'outdated');
    assert.equal(loadOnce.get('a'), fresh);
    loads[1]!.resolve('fresh');
    assert.equal(await fresh, 'fresh');
    assert.deepEqual(kept, ['fresh']);
  });

  it('loads every key again after forgetAll()', async () => {
    const loadOnce = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const results = [loadOnce.run('a', load), loadOnce.run('b', load)];
    loadOnce.forgetAll();
    assert.equal(loadOnce.size, 0);
    results.push(loadOnce.run('a', load));
    for (const { resolve } of loads) resolve('found');
    await Promise.all(results);
    assert.equal(loads.length, 3);
  });

  it('settled() waits for all running loads, also for loads that start while it waits and for loads that fail', async () => {
    const loadOnce = new LoadOnce<string, string>();
    const { loads, load } = openSource();
    const first = loadOnce.run('a', load).then(() => loadOnce.run('b', load));
    let settled = false;
    const settling = loadOnce.settled().then(() => {
      settled = true;
    });
    loads[0]!.resolve('found');
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([settled, loadOnce.size], [false, 1]);
    loads[1]!.reject(new Error('the load failed'));
    await assert.rejects(first);
    await settling;
    assert.equal(loadOnce.size, 0);
  });
});
