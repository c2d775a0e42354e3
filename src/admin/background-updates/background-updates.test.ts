import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { openContents } from '../../../test/support/databases/database-contents.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';
import { Jobs, jobMigrations } from '../../kernel/jobs/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { Administration } from '../test/administration.ts';
import { BackgroundUpdates } from './background-updates.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('background_updates of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    const roomIds: string[] = [];
    before(async () => {
      server = await startTestServer({
        database: kind,
        config: { directory: { user_directory: { search_all_users: true } } },
      });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
      for (const name of ['one', 'two']) roomIds.push(await anna.createRoom({ name }));
      await admin.do('GET', '/v1/rooms');
    });
    after(() => server.stop());

    const status = () => admin.do('GET', '/v1/background_updates/status');
    const isIdle = async () => Object.keys((await status())['current_updates'] as object).length === 0;
    const start = (job_name: string) => admin.do('POST', '/v1/background_updates/start_job', { job_name });
    const tasks = async () => {
      const query = { action_name: 'admin/background-update' };
      const answer = await admin.do('GET', '/v1/scheduled_tasks', undefined, query);
      return answer['scheduled_tasks'] as Record<string, unknown>[];
    };

    it('pauses and continues an update, shows its progress, and refuses to start it a second time', async () => {
      assert.deepEqual(await status(), { enabled: true, current_updates: {} });
      assert.deepEqual(await admin.do('POST', '/v1/background_updates/enabled', { enabled: false }), {
        enabled: false,
      });
      assert.deepEqual(await admin.do('GET', '/v1/background_updates/enabled'), { enabled: false });
      assert.deepEqual(await start('populate_stats_process_rooms'), {});
      await eventually('the update to begin', async () => {
        const [task] = await tasks();
        return (task?.['progress'] as { total: number | null } | undefined)?.total === 2;
      });
      const { enabled, current_updates } = await status();
      const main = { name: 'populate_stats_process_rooms', total_item_count: 0, total_duration_ms: 0 };
      assert.deepEqual(
        { enabled, current_updates },
        { enabled: false, current_updates: { main: { ...main, average_items_per_ms: 0 } } },
      );
      const { status: state, resource_id, progress } = (await tasks())[0]!;
      assert.deepEqual(
        [state, resource_id, progress],
        ['active', 'populate_stats_process_rooms', { done: 0, total: 2 }],
      );
      const again = await admin.refused('POST', '/v1/background_updates/start_job', {
        job_name: 'populate_stats_process_rooms',
      });
      assert.deepEqual(again, [400, 'M_UNKNOWN']);
      assert.deepEqual(await admin.do('POST', '/v1/background_updates/enabled', {}), { enabled: true });
      await eventually('the end of the update', isIdle);
      assert.deepEqual(
        (await tasks()).map((task) => [task['status'], task['progress']]),
        [['complete', { done: 2, total: 2 }]],
      );
    });

    it('continues a paused update after a restart', async () => {
      await admin.do('POST', '/v1/background_updates/enabled', { enabled: false });
      await start('populate_stats_process_rooms');
      await eventually('the update to wait', async () => !(await isIdle()));
      await server.restart();
      await eventually('the end of the update', isIdle);
      assert.deepEqual(await admin.do('GET', '/v1/background_updates/enabled'), { enabled: true });
    });

    it('populate_stats_process_rooms rewrites the table of rooms, and regenerate_directory the user directory', async () => {
      const contents = await openContents(server.databaseOptions);
      try {
        const copy = (row: Readonly<Record<string, unknown>>) =>
          Object.fromEntries(
            Object.entries(row)
              .filter(([, value]) => value !== null)
              .map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
          ) as Record<string, string | number>;
        const [room] = await contents.rows('room_stats');
        await contents.insert('room_stats', { ...copy(room!), room_id: '!gone:test', room_nid: 99_999 });
        const [listedRoom] = await contents.rows('listed_rooms');
        await contents.insert('listed_rooms', { ...copy(listedRoom!), room_id: '!gone:test' });
        const user = (await contents.rows('users')).find((row) => row['user_id'] === '@anna:test');
        await contents.insert('users', { ...copy(user!), user_id: '@zeta:test', folded_id: '@zeta:test' });
      } finally {
        await contents.close();
      }
      assert.equal((await admin.do('GET', '/v1/rooms'))['total_rooms'], 3);
      const find = async () =>
        (await admin.admin.do('POST', '/user_directory/search', { search_term: 'zeta' }))['results'];
      assert.deepEqual(await find(), []);
      await start('populate_stats_process_rooms');
      await start('regenerate_directory');
      await eventually('the end of the updates', isIdle);
      assert.equal((await admin.do('GET', '/v1/rooms'))['total_rooms'], 2);
      assert.deepEqual(await find(), [{ user_id: '@zeta:test' }]);
    });

    it('refuses to start unknown updates with 400 M_INVALID_PARAM', async () => {
      const refused = await admin.refused('POST', '/v1/background_updates/start_job', { job_name: 'other' });
      assert.deepEqual(refused, [400, 'M_INVALID_PARAM']);
      const invalid = await admin.refused('POST', '/v1/background_updates/enabled', { enabled: 'yes' });
      assert.equal(invalid[0], 400);
    });
  });
});

forSelectedDatabases(import.meta.url, (open) => {
  describe('BackgroundUpdates', () => {
    it('calls the function that beforeUpdateBatch returns also after a batch that fails', async () => {
      const database = await open(jobMigrations);
      const clock = manualClock();
      const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
      const steps: string[] = [];
      const begun = Promise.withResolvers<void>();
      const beforeUpdateBatch = async () => {
        steps.push('before');
        return () => void steps.push('after');
      };
      const update = {
        name: 'failing',
        count: async () => 1,
        async next(): Promise<undefined> {
          steps.push('batch');
          begun.resolve();
          throw new Error('the batch fails');
        },
      };
      const updates = new BackgroundUpdates({ database, clock, jobs, beforeUpdateBatch }, [update]);
      await jobs.start();
      await updates.start('failing');
      await begun.promise;
      await jobs.stop();
      assert.deepEqual(steps, ['before', 'batch', 'after']);
    });
  });
});
