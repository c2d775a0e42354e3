import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import type { JsonValue } from '../../protocol/index.ts';
import type { Database } from '../database/index.ts';
import { createLogger } from '../observability/index.ts';
import { type JobHandler, type JobRequest, Jobs, jobMigrations } from './index.ts';

forEachDatabase((open) => {
  const setUp = async (given?: {
    readonly database?: Database;
    readonly clock?: ReturnType<typeof manualClock>;
    readonly alone?: boolean;
  }) => {
    const database = given?.database ?? (await open(jobMigrations));
    const clock = given?.clock ?? manualClock();
    const lines: { msg: string; level: string }[] = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
    const log = createLogger({ level: 'warn', destination });
    const jobs = new Jobs({ database, clock, log, alone: given?.alone ?? true });
    /** Returns the levels at which failures were logged. */
    const failures = () => lines.filter(({ msg }) => msg === 'Job failed').map(({ level }) => level);
    const schedule = (request: Partial<JobRequest>) =>
      database.transaction((writer) =>
        jobs.schedule(writer, { kind: 'greet', payload: 'hello', runAt: clock.now(), ...request }),
      );
    return { database, clock, jobs, schedule, failures };
  };
  /** A handler that records its payloads. */
  const recorder = (options: Partial<JobHandler<JsonValue>> = {}) => {
    const ran: JsonValue[] = [];
    const run: JobHandler<JsonValue>['run'] = async ({ payload }) => {
      ran.push(payload);
    };
    return { ran, handler: { run, ...options } };
  };
  /** Advances the clock and waits for the jobs that come due. */
  const pass = async ({ clock, jobs }: Awaited<ReturnType<typeof setUp>>, milliseconds: number) => {
    clock.advance(milliseconds);
    await jobs.settled();
  };

  test('runs a job at its time and deletes it afterwards', async () => {
    const fixture = await setUp();
    const { ran, handler } = recorder();
    fixture.jobs.register('greet', handler);
    await fixture.jobs.start();
    await fixture.schedule({ payload: { to: 'Ann' }, runAt: fixture.clock.now() + 1_000 });
    await pass(fixture, 999);
    assert.deepEqual(ran, []);
    await pass(fixture, 1);
    assert.deepEqual(ran, [{ to: 'Ann' }]);
    assert.deepEqual(await fixture.jobs.list({ kind: 'greet' }), []);
  });

  test('reads no jobs for a minute when none is due and no other process schedules any', async () => {
    const fixture = await setUp();
    const other = await setUp({ database: fixture.database, clock: fixture.clock, alone: false });
    const { ran, handler } = recorder();
    for (const { jobs } of [fixture, other]) jobs.register('greet', handler);
    await fixture.jobs.start();
    await fixture.jobs.settled();
    const reads = () => fixture.database.statistics.reads;
    const before = reads();
    await pass(fixture, 59_999);
    assert.equal(reads(), before);
    await pass(fixture, 1);
    assert.equal(reads(), before + 1);

    // A process that is not alone runs the jobs of other processes within ten seconds.
    await fixture.jobs.stop();
    await other.jobs.start();
    await other.jobs.settled();
    await fixture.schedule({ payload: 'from another process' });
    await pass(other, 10_000);
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
    await pass(fixture, 60_000);
    assert.deepEqual(ran, []);
  });

  test('stores one job for each kind and key, which a request may replace', async () => {
    const fixture = await setUp();
    const { ran, handler } = recorder();
    fixture.jobs.register('greet', handler);
    await fixture.jobs.start();
    const later = fixture.clock.now() + 5_000;
    await fixture.schedule({ key: 'a', payload: 1, runAt: later });
    await fixture.schedule({ key: 'a', payload: 2, runAt: later });
    await fixture.schedule({ key: 'b', payload: 3, runAt: later });
    await fixture.schedule({ key: 'b', payload: 4, runAt: later + 1, replace: true });
    await pass(fixture, 5_000);
    assert.deepEqual(ran, [1]);
    await pass(fixture, 1);
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
      runAt,
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
    await pass(fixture, 1);
    await eventually('all jobs to run', () => ran.length === 1_200 || undefined);
    assert.ok(ran.includes('first') && !ran.includes(3));
  });

  test('runs a job again that was scheduled again while it ran', async () => {
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
    await pass(fixture, 1_000);
    await pass(fixture, 1_999);
    assert.equal(seen.length, 2);
    await pass(fixture, 1);
    await pass(fixture, 10_000_000);
    assert.deepEqual(seen, [
      [10, 1],
      [11, 2],
      [12, 3],
    ]);
    const [job] = await fixture.jobs.list({ kind: 'greet' });
    assert.deepEqual([job?.state, job?.error, job?.attempts, job?.running], ['failed', 'not now', 3, false]);
    assert.deepEqual(fixture.failures(), ['warn', 'warn', 'error']);
  });

  test('logs the third failure in a row of a recurring job as an error', async () => {
    const fixture = await setUp();
    fixture.jobs.every('greet', 1_000, {
      async run() {
        throw new Error('not now');
      },
    });
    await fixture.jobs.start();
    for (let count = 0; count < 4; count += 1) await pass(fixture, 1_000);
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
    await pass(fixture, 3_600_000);
    assert.deepEqual(await fixture.jobs.list({ kind: 'greet' }), []);
  });

  test('runs an interrupted job again after a restart', async () => {
    const first = await setUp();
    let interrupted = 0;
    first.jobs.register('greet', {
      run: ({ signal }) =>
        new Promise<void>((_, reject) => {
          interrupted += 1;
          signal.addEventListener('abort', () => reject(new Error('stopped')));
        }),
    });
    await first.jobs.start();
    await first.schedule({ payload: 'again' });
    while (interrupted === 0) await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await first.jobs.list({ kind: 'greet' }))[0]?.running, true);
    await first.jobs.stop();

    const second = await setUp({ database: await open.restart(first.database), clock: first.clock });
    const { ran, handler } = recorder();
    second.jobs.register('greet', handler);
    await second.jobs.start();
    await second.jobs.settled();
    assert.deepEqual(ran, ['again']);
  });

  /**
   * Starts a process whose jobs never end, and which is abandoned at the time `now`, as after a crash.
   * @returns how many jobs were begun
   */
  const crash = async (
    database: Database,
    now: number,
    register: (jobs: Jobs, run: () => Promise<void>) => void,
  ): Promise<number> => {
    // A clock of its own, since no timer of a process runs after its end.
    const { jobs } = await setUp({ database, clock: manualClock(now) });
    const first = Promise.withResolvers<void>();
    let begun = 0;
    register(jobs, () => {
      begun += 1;
      first.resolve();
      return new Promise<void>(() => {});
    });
    await jobs.start();
    await Promise.race([jobs.settled(), first.promise]);
    return begun;
  };

  test('postpones a job that crashes the process with backoff, and marks it failed after its maximum of attempts', async () => {
    const { database, clock, schedule, jobs } = await setUp();
    const begun: number[] = [];
    for (const wait of [0, 0, 999, 1, 0, 2_000, 0]) {
      clock.advance(wait);
      // Services schedule some of their jobs at every start.
      await schedule({ key: 'poison' });
      begun.push(
        await crash(database, clock.now(), (fixture, run) =>
          fixture.register('greet', { maxAttempts: 3, run }),
        ),
      );
    }
    assert.deepEqual(begun, [1, 0, 0, 1, 0, 1, 0]);
    const [job] = await jobs.list({ kind: 'greet' });
    assert.deepEqual([job?.state, job?.attempts, job?.running], ['failed', 3, false]);
    assert.match(job?.error ?? '', /interrupted/);
  });

  test('when a start schedules a job again that failed by crashes, runs it an hour later and continues to count its attempts', async () => {
    const { database, clock, schedule, jobs } = await setUp();
    const start = (): Promise<number> =>
      crash(database, clock.now(), (fixture, run) => fixture.register('greet', { maxAttempts: 1, run }));
    const begun: number[] = [];
    // Each crash is found at the next start, which marks the job as failed.
    for (const wait of [0, 0, 0, 0, 3_599_999, 1, 0, 0]) {
      clock.advance(wait);
      await schedule({ key: 'poison' });
      begun.push(await start());
    }
    assert.deepEqual(begun, [1, 0, 0, 0, 0, 1, 0, 0]);
    assert.equal((await jobs.list({ kind: 'greet' }))[0]?.attempts, 2);
    // A start that replaces the job goes on as well.
    await schedule({ key: 'replaced' });
    for (const attempts of [1, 1]) {
      await schedule({ key: 'replaced', replace: true });
      await start();
      assert.equal((await jobs.list({ key: 'replaced' }))[0]?.attempts, attempts);
    }
  });

  test('after a recurring job has crashed the process, runs it at its next time and from its last progress', async () => {
    const { database, clock, jobs } = await setUp();
    const begun: number[] = [];
    const start = async () =>
      begun.push(
        await crash(database, clock.now(), (fixture, run) =>
          fixture.every('tick', 1_500, { maxAttempts: 2, run }),
        ),
      );
    await start();
    clock.advance(1_500);
    await database.batch([{ sql: "update jobs set payload = ? where kind = 'tick'", rows: [['7']] }]);
    for (const wait of [0, 0, 999, 1, 0, 1_500, 0]) {
      clock.advance(wait);
      await start();
    }
    assert.deepEqual(begun, [0, 1, 0, 0, 1, 0, 1, 0]);
    const [job] = await jobs.list({ kind: 'tick' });
    assert.deepEqual([job?.state, job?.payload, job?.runAt], ['waiting', 7, clock.now() + 1_500]);
  });

  test('does not count an attempt that a stop of the server interrupts', async () => {
    const first = await setUp();
    let begun = 0;
    first.jobs.register('greet', {
      run: () => {
        begun += 1;
        return new Promise<void>(() => {});
      },
    });
    await first.jobs.start();
    await first.schedule({});
    await eventually('the attempt', () => begun === 1);
    const stopping = first.jobs.stop();
    await eventually('the stop', async () => {
      first.clock.advance(1_000);
      return (await first.jobs.list({ isRunning: true })).length === 0;
    });
    await stopping;
    const [job] = await first.jobs.list({ kind: 'greet' });
    assert.deepEqual([job?.attempts, job?.runAt, job?.error], [0, job?.createdAt, null]);
  });

  test('does not run a job that another process has leased until the lease ends', async () => {
    const fixture = await setUp({ alone: false });
    const { ran, handler } = recorder();
    fixture.jobs.register('greet', handler);
    await fixture.jobs.start();
    await fixture.schedule({ runAt: fixture.clock.now() + 1_000 });
    const lease = fixture.clock.now() + 30_000;
    await fixture.database.batch([
      { sql: "update jobs set lease_until = ? where kind = 'greet'", rows: [[lease]] },
    ]);
    await pass(fixture, 29_999);
    assert.deepEqual(ran, []);
    await pass(fixture, 1);
    assert.deepEqual(ran, ['hello']);
  });

  test('runs at most as many jobs of a kind at the same time as its handler allows', async () => {
    const fixture = await setUp();
    let running = 0;
    let maxRunning = 0;
    fixture.jobs.register('greet', {
      parallel: 2,
      async run() {
        running += 1;
        maxRunning = Math.max(maxRunning, running);
        await fixture.database.transaction(async () => {});
        running -= 1;
      },
    });
    await fixture.jobs.start();
    await Promise.all(Array.from({ length: 9 }, () => fixture.schedule({})));
    await fixture.jobs.settled();
    assert.equal(maxRunning, 2);
    assert.deepEqual(await fixture.jobs.list({ kind: 'greet' }), []);
  });

  test('repeats a recurring job, also after it failed', async () => {
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
    for (let second = 0; second < 32; second += 1) await pass(fixture, 1_000);
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
    await pass(fixture, 10_000);
    assert.equal(runs, 2);
    await pass(fixture, 9_000);
    assert.equal(runs, 2, 'the second run was short');
    await pass(fixture, 1_000);
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
    await pass(fixture, 20_000);
    assert.deepEqual(ran, []);
  });

  test('waits until scheduled jobs were attempted once, up to a timeout', async () => {
    const fixture = await setUp();
    const begun: string[] = [];
    const turns = new Map(['a', 'b', 'again'].map((name) => [name, Promise.withResolvers<void>()]));
    fixture.jobs.register<string>('greet', {
      async run({ payload }) {
        begun.push(payload);
        await turns.get(payload)?.promise;
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
    // The running attempt does not cover this request.
    await fixture.schedule({ key: 'a', payload: 'again' });
    const all = [wait('a', 'a'), wait('b', 'b'), wait('all')];
    turns.get('b')?.resolve();
    await all[1];
    assert.deepEqual(resolved, ['b'], 'a failed attempt counts');
    turns.get('a')?.resolve();
    await eventually('the second attempt', () => begun.includes('again'));
    assert.deepEqual(resolved, ['b']);
    turns.get('again')?.resolve();
    await Promise.all(all);
    turns.set('slow', Promise.withResolvers());
    await fixture.schedule({ key: 'slow', payload: 'slow' });
    const slow = wait('slow');
    fixture.clock.advance(1_000);
    await slow;
    await wait('what is known to be slow');
    turns.get('slow')?.resolve();
    await fixture.jobs.settled();
  });
});
