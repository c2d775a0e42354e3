import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('largest rooms by the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
    });
    after(() => server.stop());

    it('GET /statistics/database/rooms lists the rooms with the most bytes of events', async () => {
      const [roomId, small] = [await anna.createRoom(), await anna.createRoom()];
      await anna.say(roomId, '€'.repeat(20_000));
      const { rooms } = await admin.do('GET', '/v1/statistics/database/rooms');
      const [largest, next] = rooms as { room_id: string; estimated_size: number }[];
      assert.deepEqual([largest?.room_id, next?.room_id], [roomId, small]);
      assert.ok(largest!.estimated_size > 60_000);
    });
  });
});
