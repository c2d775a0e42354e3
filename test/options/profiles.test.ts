import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';
import { enc, TestClient } from '../support/users/test-client.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('options about the visibility of profiles', () => {
    let server: TestServer;
    afterEach(() => server.stop());

    const start = async (profiles: Record<string, boolean>) => {
      server = await startTestServer({ database: open.kind, config: { profiles } });
      const [anna, ben] = [
        await TestClient.register(server, 'anna'),
        await TestClient.register(server, 'ben'),
      ];
      return { anna, ben };
    };
    const path = ({ id }: TestClient, field = '') => `/profile/${enc(id)}${field}`;
    const statusesOf = async (viewer: TestClient, owner: TestClient) =>
      Promise.all(
        ['', '/displayname'].map(async (field) => (await viewer.call('GET', path(owner, field))).status),
      );

    it('limit_profile_requests_to_users_who_share_rooms shows a profile only to users who currently share a room with its owner', async () => {
      const { anna, ben } = await start({ limit_profile_requests_to_users_who_share_rooms: true });
      assert.deepEqual(await statusesOf(ben, anna), [403, 403]);
      assert.deepEqual(await statusesOf(ben, ben), [200, 200]);
      const room = await anna.createRoom();
      assert.deepEqual(await statusesOf(ben, anna), [403, 403]);
      await ben.join(room);
      assert.deepEqual(await statusesOf(ben, anna), [200, 200]);
      await ben.leave(room);
      assert.deepEqual(await statusesOf(ben, anna), [403, 403]);
      // The answer for a user who does not exist is the same, so that accounts cannot be enumerated.
      const unknown = await ben.call('GET', '/profile/@nobody:test');
      assert.deepEqual([unknown.status, unknown.body['errcode']], [403, 'M_FORBIDDEN']);
    });

    it('require_auth_for_profile_requests shows profiles only to requests with a valid access token', async () => {
      const { anna, ben } = await start({ require_auth_for_profile_requests: true });
      assert.deepEqual(await statusesOf(ben, anna), [200, 200]);
      for (const field of ['', '/displayname', '/m.tz']) {
        const { status, body } = await server.api('GET', `/_matrix/client/v3${path(anna, field)}`);
        assert.deepEqual([status, body['errcode']], [401, 'M_MISSING_TOKEN']);
      }
      const invalid = { token: 'nonsense' };
      assert.equal((await server.api('GET', `/_matrix/client/v3${path(anna)}`, invalid)).status, 401);
    });
  });
});
