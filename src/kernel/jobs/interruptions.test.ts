import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import type { Database } from '../database/index.ts';
import type { Jobs } from './index.ts';
import { recorder, setUpJobs } from './test/jobs-under-test.ts';

forEachDatabase((open) => {
  const setUp = (given?: Parameters<typeof setUpJobs>[1]) => setUpJobs(open, given);

  test('runs an interrupted job again after a restart', async () => {
    const first = await setUp();
    let begun = 0;
    first.jobs.register('greet', {
      run: ({ signal }) =>
        new Promise<void>((_, reject) => {
          begun += 1;
          signal.addEventListener('abort', () => reject(new Error('stopped')));
        }),
    });
    await first.jobs.start();
    await first.schedule({ payload: 'again' });
    while (begun === 0) await new Promise((resolve) => setImmediate(resolve));
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
   * Starts a process at the time `now` whose jobs never end, and never uses it again, as if it had crashed.
   * @returns how many jobs were started
   */
  const crash = async (
    database: Database,
    now: number,
    register: (jobs: Jobs, run: () => Promise<void>) => void,
  ): Promise<number> => {
    // Uses a separate clock, so that the timers of this process never run again.
    const { jobs } = await setUp({ database, clock: manualClock(now) });
    const firstBegun = Promise.withResolvers<void>();
    let begun = 0;
    register(jobs, () => {
      begun += 1;
      firstBegun.resolve();
      return new Promise<void>(() => {});
    });
    await jobs.start();
    await Promise.race([jobs.settled(), firstBegun.promise]);
    return begun;
  };

  test('postpones with backoff a job that crashes the process, and marks it failed after its maximum number of attempts', async () => {
    const { database, clock, schedule, jobs } = await setUp();
    const begun: number[] = [];
    for (const wait of [0, 0, 999, 1, 0, 2_000, 0]) {
      clock.advance(wait);
      // The job is scheduled before each start, because services schedule some of their jobs at every start.
      await schedule({ key: 'poison' });
      begun.push(
        await crash(database, clock.now(), (started, run) =>
          started.register('greet', { maxAttempts: 3, run }),
        ),
      );
    }
    assert.deepEqual(begun, [1, 0, 0, 1, 0, 1, 0]);
    const [job] = await jobs.list({ kind: 'greet' });
    assert.deepEqual([job?.state, job?.attempts, job?.running], ['failed', 3, false]);
    assert.match(job?.error ?? '', /interrupted/);
  });

  test('runs a job that failed because of crashes again after an hour at the earliest when a start schedules it again, and continues the count of its attempts', async () => {
    const { database, clock, schedule, jobs } = await setUp();
    const start = (): Promise<number> =>
      crash(database, clock.now(), (started, run) => started.register('greet', { maxAttempts: 1, run }));
    const begun: number[] = [];
    // Each crash is found at the next start, which marks the job as failed.
    for (const wait of [0, 0, 0, 0, 3_599_999, 1, 0, 0]) {
      clock.advance(wait);
      await schedule({ key: 'poison' });
      begun.push(await start());
    }
    assert.deepEqual(begun, [1, 0, 0, 0, 0, 1, 0, 0]);
    assert.equal((await jobs.list({ kind: 'greet' }))[0]?.attempts, 2);
    // A job that a start schedules with `replace` also keeps its number of attempts.
    await schedule({ key: 'replaced' });
    for (const attempts of [1, 1]) {
      await schedule({ key: 'replaced', replace: true });
      await start();
      assert.equal((await jobs.list({ key: 'replaced' }))[0]?.attempts, attempts);
    }
  });

  test('when a recurring job crashes the process, runs it again with backoff, then at its next time, and keeps its payload', async () => {
    const { database, clock, jobs } = await setUp();
    const begun: number[] = [];
    const start = async () =>
      begun.push(
        await crash(database, clock.now(), (started, run) =>
          started.every('tick', 1_500, { maxAttempts: 2, run }),
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
      return (await first.jobs.list({ statuses: ['active'] })).length === 0;
    });
    await stopping;
    const [job] = await first.jobs.list({ kind: 'greet' });
    assert.deepEqual([job?.attempts, job?.runAt, job?.error], [0, job?.createdAt, null]);
  });
});
