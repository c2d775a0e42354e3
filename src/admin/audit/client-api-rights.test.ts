import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('the audit log of rights that administrators have in the client API', () => {
    let server: TestServer;
    let admin: Administration;
    let anna: TestClient;
    let room: string;
    before(async () => {
      server = await startTestServer({
        database: kind,
        config: {
          rooms: { block_non_admin_invites: true },
          directory: { room_list_publication_rules: null },
        },
      });
      admin = await Administration.open(server);
      anna = await TestClient.register(server, 'anna');
      room = await anna.createRoom({ preset: 'public_chat', room_alias_name: 'town' });
    });
    after(() => server.stop());

    /** Returns the stored requests of the client API, the oldest first. */
    const stored = async () => {
      const { entries } = await admin.do('GET', '/v1/audit_log', undefined, { dir: 'f', limit: 1000 });
      return (entries as Record<string, unknown>[])
        .filter(({ path }) => String(path).startsWith('/_proto/'))
        .map((entry) => ['admin', 'operation', 'target', 'status'].map((name) => entry[name]));
    };
    const request = async (user: TestClient, method: string, path: string, body: unknown, status: number) =>
      assert.equal((await user.request(method, `/_matrix/client/v3${path}`, body)).status, status, path);
    const profile = '/profile/@anna:test/displayname';
    const address = (name: string) => `/directory/room/${encodeURIComponent(`#${name}:test`)}`;
    const visibility = () => `/directory/list/room/${room}`;

    it('lists changes of the profiles of other users, without the values', async () => {
      await request(admin.admin, 'PUT', profile, { displayname: 'Hidden name' }, 200);
      await request(admin.admin, 'DELETE', profile, undefined, 200);
      await request(admin.admin, 'DELETE', '/profile/@unknown:test/avatar_url', undefined, 404);
      const expected = [
        ['@admin:test', 'setProfileField', '@anna:test displayname', 200],
        ['@admin:test', 'deleteProfileField', '@anna:test displayname', 200],
        ['@admin:test', 'deleteProfileField', '@unknown:test avatar_url', 404],
      ];
      assert.deepEqual(await stored(), expected);
      const { entries } = await admin.do('GET', '/v1/audit_log', undefined, { target: '@anna:test' });
      assert.doesNotMatch(JSON.stringify(entries), /Hidden name/);
      const [{ ip, ts }] = entries as [{ ip: string; ts: number }];
      assert.ok(/127\.0\.0\.1|::1/.test(ip) && ts > 1e12);
    });

    it('lists the requests of an administrator without power in a room: reads, additions and deletions of its addresses, and changes of its visibility in the directory', async () => {
      const before = (await stored()).length;
      await request(admin.admin, 'GET', `/rooms/${room}/aliases`, undefined, 200);
      await request(admin.admin, 'PUT', visibility(), { visibility: 'private' }, 200);
      await request(admin.admin, 'PUT', address('village'), { room_id: room }, 200);
      await request(admin.admin, 'DELETE', address('town'), undefined, 200);
      assert.deepEqual((await stored()).slice(before), [
        ['@admin:test', 'getLocalAliases', room, 200],
        ['@admin:test', 'setRoomVisibilityOnDirectory', room, 200],
        ['@admin:test', 'setRoomAlias', '#village:test', 200],
        ['@admin:test', 'deleteRoomAlias', '#town:test', 200],
      ]);
    });

    it('lists invites and publications of rooms by administrators when the options forbid them to other users', async () => {
      const before = (await stored()).length;
      const roomOfAdmin = await admin.admin.createRoom({ preset: 'private_chat' });
      await request(admin.admin, 'POST', `/rooms/${roomOfAdmin}/invite`, { user_id: '@anna:test' }, 200);
      await request(admin.admin, 'PUT', `/directory/list/room/${roomOfAdmin}`, { visibility: 'public' }, 200);
      assert.deepEqual((await stored()).slice(before), [
        ['@admin:test', 'inviteUser', `${roomOfAdmin} @anna:test`, 200],
        ['@admin:test', 'setRoomVisibilityOnDirectory', roomOfAdmin, 200],
      ]);
    });

    it('names the administrator who logged in as another administrator', async () => {
      await admin.do('PUT', '/v1/users/@anna:test/admin', { admin: true });
      const { access_token: token } = await admin.do('POST', '/v1/users/@anna:test/login', {});
      const before = (await stored()).length;
      const answer = await server.api('PUT', '/_matrix/client/v3/profile/@admin:test/displayname', {
        token: String(token),
        body: { displayname: 'Root' },
      });
      assert.equal(answer.status, 200);
      await admin.do('PUT', '/v1/users/@anna:test/admin', { admin: false });
      assert.deepEqual((await stored()).slice(before), [
        ['@admin:test', 'setProfileField', '@admin:test displayname', 200],
      ]);
    });

    it('lists neither requests of administrators that any user may make, nor refused requests of other users', async () => {
      const before = (await stored()).length;
      const roomOfAdmin = await admin.admin.createRoom({ preset: 'public_chat', room_alias_name: 'own' });
      await request(admin.admin, 'PUT', '/profile/@admin:test/displayname', { displayname: 'Me' }, 200);
      await request(admin.admin, 'GET', `/rooms/${roomOfAdmin}/aliases`, undefined, 200);
      await request(
        admin.admin,
        'PUT',
        `/directory/list/room/${roomOfAdmin}`,
        { visibility: 'private' },
        200,
      );
      await request(admin.admin, 'DELETE', address('own'), undefined, 200);
      await request(anna, 'PUT', '/profile/@admin:test/displayname', { displayname: 'Other' }, 403);
      await request(anna, 'POST', `/rooms/${room}/invite`, { user_id: '@admin:test' }, 403);
      assert.deepEqual((await stored()).slice(before), []);
    });
  });
});
