import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { OncePerUser } from './once-per-user.ts';

describe('OncePerUser', () => {
  it('runs a failed task of a user again only after an hour, although the user is active before', async () => {
    const clock = manualClock();
    const oncePerUser = new OncePerUser('users', { caches: plainCaches(clock), clock, log: silentLogger });
    let runs = 0;
    const check = async () => {
      oncePerUser.run('@alice:test', async () => {
        runs++;
        throw new Error('no room');
      });
      await oncePerUser.settled();
    };
    await check();
    clock.advance(3_599_999);
    await check();
    assert.equal(runs, 1);
    clock.advance(1);
    await check();
    assert.equal(runs, 2);
  });

  it('runs a task again after runAgain, but never two tasks of one user at the same time', async () => {
    const clock = manualClock();
    const caches = plainCaches(clock);
    const oncePerUser = new OncePerUser('users', { caches, clock, log: silentLogger });
    const runs: PromiseWithResolvers<void>[] = [];
    let settled = false;
    const check = () =>
      oncePerUser.run('@alice:test', () => {
        const run = Promise.withResolvers<void>();
        runs.push(run);
        return run.promise;
      });
    check();
    oncePerUser.runAgain();
    check();
    assert.equal(runs.length, 1, 'the first task is running');
    const end = oncePerUser.settled().then(() => {
      settled = true;
    });
    await setImmediate();
    assert.equal(settled, false);
    runs[0]!.resolve();
    await end;
    check();
    assert.equal(runs.length, 2, 'the first task began before the change');
    runs[1]!.resolve();
    await oncePerUser.settled();
    check();
    assert.equal(runs.length, 2);
  });

  it('runs the tasks of ten users at the same time, and those of others when these end', async () => {
    const clock = manualClock();
    const oncePerUser = new OncePerUser('users', { caches: plainCaches(clock), clock, log: silentLogger });
    const runs: PromiseWithResolvers<void>[] = [];
    for (let user = 0; user < 25; user++) {
      oncePerUser.run(`@${user}:test`, () => {
        const run = Promise.withResolvers<void>();
        runs.push(run);
        return run.promise;
      });
    }
    for (const begun of [10, 20, 25]) {
      await setImmediate();
      assert.equal(runs.length, begun);
      for (const run of runs) run.resolve();
    }
    await oncePerUser.settled();
  });
});
