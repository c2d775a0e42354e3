import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { LastSeen } from './last-seen.ts';
import { deviceMigrations } from './migrations.ts';
import { storeNoActivity } from './store-no-activity.ts';
import type { DeviceTables } from './tables.ts';

const day = 86_400_000;

forSelectedDatabases(import.meta.url, (open) => {
  const start = async (user_ips_max_age: number | null) => {
    const database = await open(deviceMigrations);
    await database.transaction((writer) => storeNoActivity(writer, '@alice:test'));
    const clock = manualClock();
    const lastSeen = new LastSeen({ database, clock, log: silentLogger }, { user_ips_max_age });
    const see = (deviceId: string | undefined, ip: string) =>
      lastSeen.record({ userId: '@alice:test', deviceId, ip, userAgent: `agent of ${ip}` });
    const rows = () =>
      database.reader<DeviceTables>().selectFrom('user_ips').selectAll().orderBy('ip').execute();
    return { database, clock, lastSeen, see, rows };
  };

  describe('LastSeen', () => {
    it('buffers activity in memory and writes it in one batch after a minute', async () => {
      const { database, clock, lastSeen, see, rows } = await start(28 * day);
      for (let i = 0; i < 100; i++) see(i % 2 ? 'A' : undefined, '::1');
      lastSeen.record({ userId: '@unknown:test', deviceId: 'B', ip: '::0', userAgent: undefined });
      assert.equal(database.statistics.batches, 0);
      const at = clock.now();
      clock.advance(60_000);
      await lastSeen.flush();
      assert.equal(database.statistics.batches, 1);
      const common = { user_id: '@alice:test', ip: '::1', user_agent: 'agent of ::1', last_seen_at: at };
      const found = (await rows())
        .filter((row) => row.user_id === '@alice:test')
        .sort((a, b) => a.device_id.localeCompare(b.device_id));
      assert.deepEqual(found, [
        { ...common, device_id: '' },
        { ...common, device_id: 'A' },
      ]);
      const users = await database.reader<DeviceTables>().selectFrom('user_activity').selectAll().execute();
      assert.deepEqual(users, [{ user_id: '@alice:test', last_seen_at: at }]);
    });

    it('writes nothing when no device was active', async () => {
      const { database, lastSeen } = await start(28 * day);
      await lastSeen.flush();
      assert.equal(database.statistics.batches, 0);
    });

    it('deletes addresses that are older than the maximum age [option: user_ips_max_age]', async () => {
      for (const [maxAge, left] of [
        [day, ['::2']],
        [null, ['::1', '::2']],
      ] as const) {
        const { clock, lastSeen, see, rows } = await start(maxAge);
        see('A', '::1');
        await lastSeen.flush();
        clock.advance(2 * day);
        see('A', '::2');
        await lastSeen.flush();
        assert.deepEqual(
          (await rows()).map(({ ip }) => ip),
          left,
        );
      }
    });

    it('deletes the addresses of a deactivated user, also when their write has begun, and sets the time of the last activity to 0 only for an erased user', async () => {
      for (const [isErased, left] of [
        [true, [0]],
        [false, [1_700_000_000_000]],
      ] as const) {
        const { database, lastSeen, see, rows } = await start(day);
        see('A', '::1');
        const writing = lastSeen.flush();
        see('A', '::2');
        lastSeen.forget('@alice:test', isErased);
        await writing;
        await lastSeen.flush();
        assert.deepEqual(await rows(), []);
        const users = await database
          .reader<DeviceTables>()
          .selectFrom('user_activity')
          .select('last_seen_at')
          .execute();
        assert.deepEqual(
          users.map(({ last_seen_at }) => last_seen_at),
          left,
        );
      }
    });

    it('flush() does not reject when a write to the database fails, and further activity is accepted', async () => {
      const { database, lastSeen, see } = await start(day);
      await database.close();
      see('A', '::1');
      await lastSeen.flush();
      see('A', '::2');
      await lastSeen.flush();
    });
  });
});
