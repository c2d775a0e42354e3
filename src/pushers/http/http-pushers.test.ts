import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import type { HttpPusherDeps } from './http-pusher.ts';
import { HttpPushers } from './http-pushers.ts';

describe('HttpPushers', () => {
  it('sends for at most 200 pushers at a time after a start', async () => {
    const answer = Promise.withResolvers<never[]>();
    let reads = 0;
    const query = {
      selectFrom: () => query,
      selectAll: () => query,
      where: () => query,
      executeTakeFirst: async () => {
        reads += 1;
        await answer.promise;
        return undefined;
      },
      orderBy: () => query,
      limit: () => query,
      execute: async () => [],
    };
    const pushers = new HttpPushers({
      database: { reader: () => query },
      clock: manualClock(),
      stopping: new AbortController().signal,
    } as unknown as HttpPusherDeps);
    const restoring = pushers.restore(Array.from({ length: 1_000 }, (_, index) => index));
    await new Promise(setImmediate);
    assert.equal(reads, 200);
    answer.resolve([]);
    await restoring;
    assert.equal(reads, 1_000);
    await pushers.stop();
  });
});
