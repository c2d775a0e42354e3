import assert from 'node:assert/strict';
import { it } from 'node:test';
import { openKernel } from '../../src/composition/kernel.ts';
import { OpenedSlices } from '../../src/composition/opened-slices.ts';
import { startRooms } from '../../src/composition/rooms.ts';
import { Shutdown } from '../../src/composition/shutdown.ts';
import { startUsers } from '../../src/composition/users.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { RelationIndex } from '../../src/relations/index.ts';
import { manualClock } from '../support/clocks/manual-clock.ts';
import { makeTestDatabase } from '../support/databases/databases.ts';
import { testConfiguration } from '../support/servers/server.ts';

/**
 * Counts how many of 400 events are cached with this configuration, before and after the global factor is
 * halved.
 */
async function cachedEvents(
  event_cache_size: number,
  global_factor: number,
  body = 'x',
): Promise<readonly [before: number, after: number]> {
  const shutdown = new Shutdown(silentLogger);
  const testDatabase = await makeTestDatabase('sqlite');
  shutdown.add('test database', () => testDatabase.remove());
  try {
    const configuration = testConfiguration({ caches: { event_cache_size, caches: { global_factor } } });
    const environment = {
      configuration,
      clock: manualClock(),
      randomness: systemRandomness,
      log: silentLogger,
      databaseOptions: testDatabase.options,
    };
    const kernel = await openKernel(environment, shutdown);
    const opened = new OpenedSlices(shutdown);
    const users = startUsers(kernel, opened);
    const relationIndex = new RelationIndex(kernel.database, kernel.serverName, kernel.caches);
    const { creation, engine } = await startRooms(kernel, users, relationIndex, opened);
    const sender = '@alice:test';
    const roomId = await creation.create(sender, {});
    const draft = { type: 'm.room.message', sender, content: { msgtype: 'm.text', body } };
    const events = await Promise.all(
      Array.from({ length: 400 }, () => engine.timeline.append(roomId, draft)),
    );
    const count = () => events.filter(({ nid }) => engine.events.peek(nid) !== undefined).length;
    const before = count();
    const caches = { ...configuration.caches.caches, global_factor: global_factor / 2 };
    kernel.caches.configure({ ...configuration.caches, caches });
    return [before, count()];
  } finally {
    await shutdown.run();
  }
}

it('bounds the event cache by event_cache_size times the global factor, also after a change of the factor [option: event_cache_size, caches.global_factor]', async () => {
  assert.deepEqual(await cachedEvents(150, 1), [150, 75]);
  assert.deepEqual(await cachedEvents(150, 2), [300, 150]);
  assert.deepEqual(await cachedEvents(500, 1), [400, 250]);
});

it('bounds the event cache by bytes as well, so that large events do not fill the memory [option: event_cache_size]', async () => {
  const [before, after] = await cachedEvents(10_000, 0.5, 'x'.repeat(60_000));
  // 32 MiB at this factor; an event counts twice, because its text for clients is cached as well.
  assert.ok(before > 200 && before < 280, `${before} events`);
  assert.ok(after > 100 && after < 140, `${after} events`);
});
