import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('jobs by the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
    });
    after(() => server.stop());

    it('GET /scheduled_tasks lists jobs, with filters', async () => {
      const deleted = await anna.createRoom();
      const { delete_id } = await admin.do('DELETE', `/v2/rooms/${enc(deleted)}`, {});
      const tasks = async (query: Record<string, string | string[] | number>) =>
        (await admin.do('GET', '/v1/scheduled_tasks', undefined, query))['scheduled_tasks'] as {
          status: string;
          resource_id: string;
          result: unknown;
        }[];
      const deletionTasks = () => tasks({ action_name: 'rooms/deletion', resource_id: String(delete_id) });
      await eventually(
        'the deletion of the room',
        async () => (await deletionTasks())[0]?.status === 'complete',
      );
      assert.deepEqual(((await deletionTasks())[0]!.result as { kicked: string[] }).kicked, ['@anna:test']);
      assert.equal((await tasks({ status: 'complete' })).at(-1)?.resource_id, delete_id);
      assert.equal((await tasks({ status: 'complete', dir: 'b', limit: 1 }))[0]?.resource_id, delete_id);
      assert.deepEqual(await tasks({ status: 'cancelled' }), []);
      assert.deepEqual(await tasks({ job_status: 'complete' }), await tasks({ status: 'complete' }));
      assert.deepEqual(
        await admin.refused('GET', '/v1/scheduled_tasks', undefined, { job_status: 'other' }),
        [400, 'M_INVALID_PARAM'],
      );
      assert.equal((await tasks({ limit: 3 })).length, 3);
      assert.deepEqual((await tasks({ dir: 'b' })).toReversed(), await tasks({}));
      assert.ok((await tasks({ max_timestamp: 9e15, status: 'scheduled' })).length > 0);
      assert.deepEqual(await tasks({ action_name: 'rooms/deletion', status: 'failed' }), []);
      assert.deepEqual(await tasks({ action_name: 'rooms/deletion', max_timestamp: 1 }), []);
      const deletions = (status: string[]) => tasks({ action_name: ['rooms/deletion', 'unknown'], status });
      assert.deepEqual(await deletions(['failed', 'complete']), await deletionTasks());
      assert.deepEqual(await deletions(['failed', 'cancelled']), []);
      const waiting = await tasks({ status: ['scheduled', 'active'] });
      assert.ok(waiting.length > 0);
      assert.ok(waiting.every(({ status }) => ['scheduled', 'active'].includes(status)));
      assert.ok((await tasks({})).some(({ status }) => status === 'scheduled'));
    });
  });
});
