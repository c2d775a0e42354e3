import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewaySlots } from './gateway-slots.ts';

describe('GatewaySlots', () => {
  it('runs at most 16 requests to one gateway at the same time, or at most 8 requests for pushers whose last attempt failed', async () => {
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
