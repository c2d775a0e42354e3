import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('blocking of rooms by the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
      ben = await TestClient.register(server, 'ben');
    });
    after(() => server.stop());

    it('PUT /rooms/{roomId}/block keeps local users from joining a room and from inviting to it, also after a restart', async () => {
      const roomId = await anna.createRoom();
      const path = `/v1/rooms/${enc(roomId)}/block`;
      assert.deepEqual(await admin.do('GET', path), { block: false });
      await admin.do('PUT', path, { block: true });
      assert.deepEqual(await admin.do('GET', path), { block: true, user_id: '@admin:test' });
      await server.restart();
      for (const [client, action, body] of [
        [ben, 'join', {}],
        [anna, 'invite', { user_id: ben.id }],
      ] as const) {
        const answer = await client.call('POST', `/rooms/${enc(roomId)}/${action}`, body);
        assert.deepEqual([answer.status, answer.body['errcode']], [403, 'M_FORBIDDEN']);
      }
      await anna.say(roomId, 'still here');
      await admin.do('PUT', path, { block: false });
      await ben.join(roomId);
      await admin.do('PUT', '/v1/rooms/!unknown:elsewhere/block', { block: true });
      assert.deepEqual(await admin.refused('PUT', '/v1/rooms/nonsense/block', { block: true }), [
        400,
        'M_INVALID_PARAM',
      ]);
    });
  });
});
