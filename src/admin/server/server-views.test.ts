import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';

type Json = Readonly<Record<string, unknown>>;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('views of the server in the admin API', () => {
    let server: TestServer;
    let admin: TestClient;
    let anna: TestClient;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await registerAdmin(server);
      anna = await TestClient.register(server, 'anna');
    });
    after(() => server.stop());

    const read = async (path: string, query: Record<string, string> = {}) => {
      const { status, body } = await admin.request('GET', `/_synapse/admin/v1/${path}`, undefined, query);
      return { status, body: body as Json };
    };
    const overview = async () => (await read('overview')).body as Readonly<Record<string, Json>>;

    it('GET /v1/overview counts requests, syncs and events since the start, and open requests', async () => {
      const earlier = await overview();
      const roomId = await anna.createRoom();
      await anna.call('GET', '/sync');
      await anna.call('GET', '/nothing');
      const later = await overview();
      const grown = (part: string, name: string) =>
        Number(later[part]?.[name]) - Number(earlier[part]?.[name]);
      // Includes the request of the first overview, which was not answered when its figures were read.
      assert.equal(grown('requests', 'answered'), 4);
      assert.equal(grown('requests', 'syncs'), 1);
      assert.equal(grown('requests', 'failed'), 0);
      assert.ok(grown('events', 'local') >= 5, `${grown('events', 'local')} events of ${roomId}`);
      assert.equal(grown('events', 'remote'), 0);
      assert.deepEqual([later['requests']?.['open'], later['requests']?.['open_syncs']], [1, 0]);
      assert.deepEqual([later['server_name'], later['database']], ['test', kind]);
    });

    it('GET /v1/overview reports memory and processor time, and from the second request on the event loop lag', async () => {
      await overview();
      const { process: usage, federation, ...rest } = await overview();
      assert.ok(Number(usage?.['memory_bytes']) > Number(usage?.['heap_bytes']));
      assert.ok(Number(usage?.['cpu_ms']) > 0 && Number(usage?.['event_loop_busy_ms']) > 0);
      const lag = usage?.['event_loop_lag_ms'] as Json;
      assert.ok(Number(lag['max']) >= Number(lag['mean']), JSON.stringify(lag));
      assert.deepEqual([federation?.['pending_pdus'], federation?.['pending_edus']], [0, 0]);
      assert.ok(Number(rest['started_ts']) < Number(rest['now_ts']));
    });

    it('GET /v1/statistics/days returns the figures of the current day', async () => {
      const today = new Date().toISOString().slice(0, 10);
      const { status, body } = await read('statistics/days', {
        from_day: '2020-01-01',
        to_day: '2999-01-01',
      });
      assert.equal(status, 200);
      const newest = (body['days'] as Json[]).at(-1);
      assert.ok(String(newest?.['day']) >= today);
      assert.deepEqual(Object.keys(newest ?? {}), [
        'day',
        'users',
        'active_users',
        'rooms',
        'messages',
        'local_messages',
        'media_bytes',
        'database_bytes',
      ]);
      assert.ok(Number(newest?.['users']) >= 1 && Number(newest?.['database_bytes']) > 0);
    });

    it('GET /v1/statistics/days responds 400 to values that are not days, and to periods that end before they begin', async () => {
      const rejected = [
        { from_day: '2026-01-01' },
        { from_day: 'yesterday', to_day: '2026-01-01' },
        { from_day: '2026-01-01', to_day: '2026-99-99' },
        { from_day: '2026-02-30', to_day: '2026-03-01' },
        { from_day: '2026-01-02', to_day: '2026-01-01' },
      ];
      for (const query of rejected) assert.equal((await read('statistics/days', query)).status, 400);
    });

    it('GET /v1/effective_configuration returns the values of all options with secrets masked', async () => {
      const { body } = await read('effective_configuration');
      const options = new Map((body['options'] as Json[]).map((option) => [option['name'], option]));
      assert.equal(options.get('server_name')?.['value'], 'test');
      assert.equal(options.get('registration_shared_secret')?.['value'], '<secret>');
      assert.equal(options.get('admin_console.enabled')?.['value'], true);
      assert.ok(options.size > 300, String(options.size));
      assert.ok(!JSON.stringify(body).includes('shared secret'));
    });
  });
});
