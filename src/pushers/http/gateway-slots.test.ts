import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { GatewaySlots } from './gateway-slots.ts';
import type { HttpPusherDeps } from './http-pusher.ts';
import { HttpPushers } from './http-pushers.ts';

describe('GatewaySlots', () => {
  it('runs at most 16 requests to one gateway at the same time, and 8 more of pushers whose last attempt failed', async () => {
    for (const [hasFailed, expected] of [
      [false, 16],
      [true, 8],
    ] as const) {
      const slots = new GatewaySlots();
      const end = Promise.withResolvers<void>();
      let started = 0;
      const running = Array.from({ length: 40 }, (_, index) =>
        slots.run({ userId: `@user${index}:test`, host: 'gateway.example' }, hasFailed, async () => {
          started += 1;
          await end.promise;
        }),
      );
      assert.equal(started, expected);
      end.resolve();
      await Promise.all(running);
      assert.equal(started, 40);
    }
  });

  it('runs at most 5 requests of one user at the same time, and requests of other users meanwhile', async () => {
    const slots = new GatewaySlots();
    const end = Promise.withResolvers<void>();
    const started: string[] = [];
    const run = (userId: string, host: string) =>
      slots.run({ userId, host }, false, async () => {
        started.push(userId);
        await end.promise;
      });
    const hosts = Array.from({ length: 7 }, (_, index) => `gateway${index}.example`);
    const running = [...hosts.map((host) => run('@eve:test', host)), run('@ben:test', 'gateway0.example')];
    assert.deepEqual(started, [...Array.from({ length: 5 }, () => '@eve:test'), '@ben:test']);
    end.resolve();
    await Promise.all(running);
    assert.equal(started.length, 8);
  });
});

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
