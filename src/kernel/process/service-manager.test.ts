import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { ServiceManager } from './service-manager.ts';

describe('ServiceManager', () => {
  const open = (environment: NodeJS.ProcessEnv) => {
    const clock = manualClock();
    const sent: (readonly string[])[] = [];
    const manager = new ServiceManager(
      clock,
      environment,
      async (assignments) => void sent.push(assignments),
    );
    return { clock, sent, manager };
  };
  const socket = { NOTIFY_SOCKET: '/run/systemd/notify' };

  it('notifies systemd when the server is ready and when it stops', async () => {
    const { sent, manager, clock } = open(socket);
    await manager.ready('Serves example.org');
    clock.advance(3_600_000);
    await manager.stopping();
    assert.deepEqual(sent, [
      ['READY=1', 'STATUS=Serves example.org'],
      ['STOPPING=1', 'STATUS=Stopping'],
    ]);
  });

  it('notifies the watchdog of systemd whenever half of its timeout has passed, until the server stops', async () => {
    const { sent, manager, clock } = open({
      ...socket,
      WATCHDOG_USEC: '60000000',
      WATCHDOG_PID: String(process.pid),
    });
    clock.advance(60_000);
    assert.deepEqual(sent, [], 'not before the server is ready');
    await manager.ready('Serves');
    for (let count = 0; count < 3; count += 1) {
      clock.advance(30_000);
      await turn();
    }
    assert.deepEqual(sent.slice(1), [['WATCHDOG=1'], ['WATCHDOG=1'], ['WATCHDOG=1']]);
    await manager.stopping();
    clock.advance(60_000);
    await turn();
    assert.equal(sent.length, 5);
  });

  it('sends nothing without NOTIFY_SOCKET, and nothing to a watchdog of another process', async () => {
    const without = open({ WATCHDOG_USEC: '60000000' });
    await without.manager.ready('Serves');
    without.clock.advance(60_000);
    await without.manager.stopping();
    assert.deepEqual(without.sent, []);
    const other = open({ ...socket, WATCHDOG_USEC: '60000000', WATCHDOG_PID: '1' });
    await other.manager.ready('Serves');
    other.clock.advance(60_000);
    await turn();
    assert.equal(other.sent.length, 1);
  });
});
