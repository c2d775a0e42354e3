import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import type { JsonValue } from '../../protocol/index.ts';
import { jobStatus } from './job-status.ts';
import { advance, recorder, setUpJobs } from './test/jobs-under-test.ts';

forEachDatabase((open) => {
  const setUp = (given?: Parameters<typeof setUpJobs>[1]) => setUpJobs(open, given);

  test('runs a job at its time and deletes it afterwards', async () => {
    const fixture = await setUp();
    const { ran, handler } = recorder();
    fixture.jobs.register('greet', handler);
    await fixture.jobs.start();
    await fixture.schedule({ payload: { to: 'Ann' }, runAt: fixture.clock.now() + 1_000 });
    await advance(fixture, 999);
    assert.deepEqual(ran, []);
    await advance(fixture, 1);
    assert.deepEqual(ran, [{ to: 'Ann' }]);
    assert.deepEqual(await fixture.jobs.list({ kind: 'greet' }), []);
  });

  test('reads jobs once a minute when none is due, and every ten seconds when other processes may schedule jobs', async () => {
    const fixture = await setUp();
    const other = await setUp({ database: fixture.database, clock: fixture.clock, isOnlyProcess: false });
    const { ran, handler } = recorder();
    for (const { jobs } of [fixture, other]) jobs.register('greet', handler);
    await fixture.jobs.start();
    await fixture.jobs.settled();
    const reads = () => fixture.database.statistics.reads;
    const before = reads();
    await advance(fixture, 59_999);
    assert.equal(reads(), before);
    await advance(fixture, 1);
    assert.equal(reads(), before + 1);

    // A process that is perhaps not the only one runs the jobs of other processes within ten seconds.
    await fixture.jobs.stop();
    await other.jobs.start();
    await other.jobs.settled();
    await fixture.schedule({ payload: 'from another process' });
    await advance(other, 10_000);
    assert.deepEqual(ran, ['from another process']);
    await other.jobs.stop();
  });

  test('never runs a job whose transaction was rolled back', async () => {
    const fixture = await setUp();
    const { ran, handler } = recorder();
    fixture.jobs.register('greet', handler);
    await fixture.jobs.start();
    const failing = fixture.database.transaction(async (writer) => {
      await fixture.jobs.schedule(writer, { kind: 'greet', payload: null, runAt: 0 });
      throw new Error('no');
    });
    await assert.rejects(failing, /no/);
    await advance(fixture, 60_000);
    assert.deepEqual(ran, []);
  });

  test('stores one job for each kind and key, and replaces it if a request says so', async () => {
    const fixture = await setUp();
    const { ran, handler } = recorder();
    fixture.jobs.register('greet', handler);
    await fixture.jobs.start();
    const later = fixture.clock.now() + 5_000;
    await fixture.schedule({ key: 'a', payload: 1, runAt: later });
    await fixture.schedule({ key: 'a', payload: 2, runAt: later });
    await fixture.schedule({ key: 'b', payload: 3, runAt: later });
    await fixture.schedule({ key: 'b', payload: 4, runAt: later + 1, replace: true });
    await advance(fixture, 5_000);
    assert.deepEqual(ran, [1]);
    await advance(fixture, 1);
    assert.deepEqual(ran, [1, 4]);
  });

  test('schedules many jobs with few statements, and does not change jobs that wait already', async () => {
    const fixture = await setUp();
    const { ran, handler } = recorder();
    fixture.jobs.register('greet', handler);
    await fixture.jobs.start();
    const runAt = fixture.clock.now() + 1;
    await fixture.schedule({ key: '3', payload: 'first', runAt });
    const requests = Array.from({ length: 1_200 }, (_, index) => ({
      kind: 'greet',
      key: `${index}`,
      payload: index,
      runAt: index < 100 ? runAt : runAt + 86_400_000,
    }));
    let statements = 0;
    await fixture.database.transaction(async (writer) => {
      const counting = (writer as { withPlugin(plugin: object): typeof writer }).withPlugin({
        transformQuery: ({ node }: { node: unknown }) => {
          statements += 1;
          return node;
        },
        transformResult: async ({ result }: { result: unknown }) => result,
      });
      await fixture.jobs.scheduleAll(counting, requests);
    });
    assert.equal(statements, 3);
    await advance(fixture, 1);
    await eventually('all due jobs to run', () => ran.length === 100 || undefined);
    assert.ok(ran.includes('first') && !ran.includes(3));
  });

  test('runs a job again when it was scheduled again while it ran', async () => {
    const fixture = await setUp();
    const ran: JsonValue[] = [];
    fixture.jobs.register('greet', {
      async run({ payload }) {
        ran.push(payload);
        if (payload === 1) await fixture.schedule({ key: 'a', payload: 2 });
      },
    });
    await fixture.jobs.start();
    await fixture.schedule({ key: 'a', payload: 1 });
    await fixture.jobs.settled();
    assert.deepEqual(ran, [1, 2]);
  });

  test('retries a failed job from its last progress, up to its maximum of attempts', async () => {
    const fixture = await setUp();
    const seen: [JsonValue, number][] = [];
    fixture.jobs.register<number>('greet', {
      maxAttempts: 3,
      async run({ payload, attempt, progress }) {
        seen.push([payload, attempt]);
        await progress(payload + 1);
        throw new Error('not now');
      },
    });
    await fixture.jobs.start();
    await fixture.schedule({ payload: 10 });
    await fixture.jobs.settled();
    assert.deepEqual(seen, [[10, 1]]);
    await advance(fixture, 1_000);
    await advance(fixture, 1_999);
    assert.equal(seen.length, 2);
    await advance(fixture, 1);
    await advance(fixture, 10_000_000);
    assert.deepEqual(seen, [
      [10, 1],
      [11, 2],
      [12, 3],
    ]);
    const [job] = await fixture.jobs.list({ kind: 'greet' });
    assert.deepEqual([job?.state, job?.error, job?.attempts, job?.running], ['failed', 'not now', 3, false]);
    assert.deepEqual(fixture.failures(), ['warn', 'warn', 'error']);
  });

  test('logs the third failure in a row of a recurring job as an error, and the failures before and after it as warnings', async () => {
    const fixture = await setUp();
    fixture.jobs.every('greet', 1_000, {
      async run() {
        throw new Error('not now');
      },
    });
    await fixture.jobs.start();
    for (let count = 0; count < 4; count += 1) await advance(fixture, 1_000);
    assert.deepEqual(fixture.failures(), ['warn', 'warn', 'error', 'warn']);
  });

  test('lists the result of a job for as long as the job is kept', async () => {
    const fixture = await setUp();
    fixture.jobs.register('greet', { keep: 10_000, run: async () => ({ greeted: 3 }) });
    await fixture.jobs.start();
    await fixture.schedule({});
    await fixture.jobs.settled();
    const [job] = await fixture.jobs.list({ state: 'done' });
    assert.deepEqual([job?.result, job?.finishedAt], [{ greeted: 3 }, fixture.clock.now()]);
    await advance(fixture, 3_600_000);
    assert.deepEqual(await fixture.jobs.list({ kind: 'greet' }), []);
  });

  test('does not run a job that another process has leased until the lease ends', async () => {
    const fixture = await setUp({ isOnlyProcess: false });
    const { ran, handler } = recorder();
    fixture.jobs.register('greet', handler);
    await fixture.jobs.start();
    await fixture.schedule({ runAt: fixture.clock.now() + 1_000 });
    const lease = fixture.clock.now() + 30_000;
    await fixture.database.batch([
      { sql: "update jobs set lease_until = ? where kind = 'greet'", rows: [[lease]] },
    ]);
    await advance(fixture, 29_999);
    assert.deepEqual(ran, []);
    await advance(fixture, 1);
    assert.deepEqual(ran, ['hello']);
  });

  test('runs at most as many jobs of a kind at the same time as its handler allows', async () => {
    const fixture = await setUp();
    /** Each function ends one running job. */
    const ends: (() => void)[] = [];
    let started = 0;
    let maxRunning = 0;
    fixture.jobs.register('greet', {
      parallel: 2,
      run() {
        started += 1;
        maxRunning = Math.max(maxRunning, ends.length + 1);
        return new Promise<void>((resolve) => void ends.push(resolve));
      },
    });
    await fixture.jobs.start();
    await fixture.database.transaction(async (writer) => {
      const requests = Array.from({ length: 9 }, () => ({ kind: 'greet', payload: 'hello', runAt: 0 }));
      await fixture.jobs.scheduleAll(writer, requests);
    });
    for (let ended = 0; ended < 9; ended += 1) {
      await eventually('two running jobs', async () => started === Math.min(ended + 2, 9));
      ends.shift()?.();
    }
    await fixture.jobs.settled();
    assert.equal(maxRunning, 2);
    assert.deepEqual(await fixture.jobs.list({ kind: 'greet' }), []);
  });

  test('repeats a recurring job, even after it failed', async () => {
    const fixture = await setUp();
    const times: number[] = [];
    const start = fixture.clock.now();
    fixture.jobs.every('tick', 10_000, {
      async run() {
        times.push(fixture.clock.now() - start);
        if (times.length === 1) throw new Error('once');
      },
    });
    await fixture.jobs.start();
    for (let second = 0; second < 32; second += 1) await advance(fixture, 1_000);
    assert.deepEqual(times, [10_000, 11_000, 21_000, 31_000]);
  });

  test('starts a recurring job again at once when its run took longer than its interval', async () => {
    const fixture = await setUp();
    let runs = 0;
    fixture.jobs.every('tick', 10_000, {
      async run() {
        runs += 1;
        if (runs === 1) fixture.clock.advance(30_000);
      },
    });
    await fixture.jobs.start();
    await advance(fixture, 10_000);
    assert.equal(runs, 2);
    await advance(fixture, 9_000);
    assert.equal(runs, 2, 'the second run was short');
    await advance(fixture, 1_000);
    assert.equal(runs, 3);
  });

  test('cancels a job before it runs', async () => {
    const fixture = await setUp();
    const { ran, handler } = recorder();
    fixture.jobs.register('greet', handler);
    await fixture.jobs.start();
    await fixture.schedule({ key: 'a', runAt: fixture.clock.now() + 1_000 });
    const cancel = () => fixture.database.transaction((writer) => fixture.jobs.cancel(writer, 'greet', 'a'));
    assert.deepEqual([await cancel(), await cancel()], [true, false]);
    await advance(fixture, 20_000);
    assert.deepEqual(ran, []);
  });

  test('keeps a cancelled job in the list for a time, with the progress that its running attempt stores afterwards, but without its result', async () => {
    const fixture = await setUp();
    const released = Promise.withResolvers<void>();
    const outcomes: boolean[] = [];
    fixture.jobs.register<number>('count', {
      keep: 1_000,
      async run({ progress, isCancelled }) {
        outcomes.push(await isCancelled());
        await progress(1);
        await released.promise;
        outcomes.push(await isCancelled());
        await progress(2);
        return 'a result';
      },
    });
    await fixture.jobs.start();
    await fixture.schedule({ kind: 'count', key: 'a', payload: 0 });
    await eventually('the attempt', () => outcomes.length === 1);
    const cancel = () =>
      fixture.database.transaction((writer) => fixture.jobs.cancel(writer, 'count', 'a', 86_400_000));
    assert.deepEqual([await cancel(), await cancel()], [true, false]);
    released.resolve();
    await fixture.jobs.settled();
    await advance(fixture, 60_000);
    const [job, ...others] = await fixture.jobs.list({ kind: 'count' });
    assert.deepEqual(
      [job?.state, job?.payload, job?.running, job?.result, jobStatus(job!), others],
      ['cancelled', 2, false, null, 'cancelled', []],
    );
    assert.deepEqual(outcomes, [false, true]);
    await advance(fixture, 2 * 86_400_000);
    assert.deepEqual(await fixture.jobs.list({ kind: 'count' }), []);
  });

  test('tells the running attempt of a job that the job was cancelled, also when the job is deleted at once', async () => {
    const fixture = await setUp();
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let wasCancelled: boolean | undefined;
    fixture.jobs.register('greet', {
      async run({ isCancelled }) {
        begun.resolve();
        await released.promise;
        wasCancelled = await isCancelled();
      },
    });
    await fixture.jobs.start();
    await fixture.schedule({ key: 'a' });
    await begun.promise;
    await fixture.database.transaction((writer) => fixture.jobs.cancel(writer, 'greet', 'a'));
    released.resolve();
    await fixture.jobs.settled();
    assert.equal(wasCancelled, true);
  });

  test('Jobs.attempted waits until scheduled jobs were attempted once, up to a timeout, and does not wait again for a job that took longer', async () => {
    const fixture = await setUp();
    const begun: string[] = [];
    const released = new Map(['a', 'b', 'again'].map((name) => [name, Promise.withResolvers<void>()]));
    fixture.jobs.register<string>('greet', {
      async run({ payload }) {
        begun.push(payload);
        await released.get(payload)?.promise;
        if (payload === 'b') throw new Error('not today');
      },
    });
    await fixture.jobs.start();
    const resolved: string[] = [];
    const wait = (what: string, key?: string) =>
      fixture.jobs.attempted('greet', key, 1_000).then(() => resolved.push(what));
    await wait('nothing');
    await fixture.schedule({ key: 'later', payload: 'later', runAt: fixture.clock.now() + 60_000 });
    await wait('nothing that is due');
    resolved.length = 0;
    for (const key of ['a', 'b']) await fixture.schedule({ key, payload: key });
    await eventually('both', () => begun.length === 2);
    // The job `a` is scheduled again during its attempt: a wait for it lasts until the next attempt has ended.
    await fixture.schedule({ key: 'a', payload: 'again' });
    const all = [wait('a', 'a'), wait('b', 'b'), wait('all')];
    released.get('b')?.resolve();
    await all[1];
    assert.deepEqual(resolved, ['b'], 'a failed attempt counts');
    released.get('a')?.resolve();
    await eventually('the second attempt', () => begun.includes('again'));
    assert.deepEqual(resolved, ['b']);
    released.get('again')?.resolve();
    await Promise.all(all);
    released.set('slow', Promise.withResolvers());
    await fixture.schedule({ key: 'slow', payload: 'slow' });
    const slow = wait('slow');
    fixture.clock.advance(1_000);
    await slow;
    // The clock does not advance during this wait.
    await wait('the slow job that is not waited for again');
    released.get('slow')?.resolve();
    await fixture.jobs.settled();
  });
});
