import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { SeveralServers } from '../../../test/support/other-servers/several-servers.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { type ClientEventJson, enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('joins and power levels by the admin API', () => {
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

    it('POST /make_room_admin gives a user the power level of the most powerful local user, and invites the user', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat', room_version: '11' });
      const path = `/v1/rooms/${enc(roomId)}/make_room_admin`;
      await admin.do('POST', path, {});
      await admin.admin.join(roomId);
      const levels = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.power_levels/`);
      assert.deepEqual(levels['users'], { [anna.id]: 100, '@admin:test': 100 });
      await admin.do('POST', path, { user_id: ben.id });
      await ben.join(roomId);
      await ben.setState(roomId, 'm.room.name', { name: 'Mine' });
      await Promise.all([anna.leave(roomId), ben.leave(roomId), admin.admin.leave(roomId)]);
      assert.deepEqual(await admin.refused('POST', path, {}), [400, 'M_UNKNOWN']);
    });

    it('POST /make_room_admin in a room of version 12 gives a user the highest finite power level, lowers no level, and changes nothing when it is repeated', async () => {
      const roomId = await anna.createRoom({ preset: 'private_chat', room_version: '12' });
      const path = `/v1/rooms/${enc(roomId)}/make_room_admin`;
      const read = (type: string) => anna.do('GET', `/rooms/${enc(roomId)}/state/${type}/`);
      const levels = await read('m.room.power_levels');
      const users = { [ben.id]: 150, '@carla:elsewhere.example': 120 };
      await anna.setState(roomId, 'm.room.power_levels', { ...levels, users });
      await admin.do('POST', path, { user_id: ben.id });
      assert.deepEqual((await read('m.room.power_levels'))['users'], users);
      await admin.do('POST', path, {});
      await admin.do('POST', path, {});
      assert.deepEqual((await read('m.room.power_levels'))['users'], { ...users, '@admin:test': 150 });
      const { chunk } = await admin.do('GET', `/v1/rooms/${enc(roomId)}/messages`, undefined, { limit: 100 });
      const changes = (chunk as ClientEventJson[]).filter(({ type }) => type === 'm.room.power_levels');
      assert.equal(changes.length, 3);
    });

    it('POST /join joins a user to a room by its id or alias, and invites the user if the room is not public', async () => {
      const open = await anna.createRoom({ preset: 'public_chat', room_alias_name: 'open' });
      assert.deepEqual(await admin.do('POST', `/v1/join/${enc('#open:test')}`, { user_id: ben.id }), {
        room_id: open,
      });
      const closed = await admin.admin.createRoom({ preset: 'private_chat' });
      await admin.do('POST', `/v1/join/${enc(closed)}`, { user_id: ben.id });
      const joined = await admin.do('GET', `/v1/users/${ben.id}/joined_rooms`);
      assert.ok([open, closed].every((roomId) => (joined['joined_rooms'] as string[]).includes(roomId)));
      const others = await anna.createRoom({ preset: 'private_chat' });
      assert.deepEqual(await admin.refused('POST', `/v1/join/${enc(others)}`, { user_id: ben.id }), [
        403,
        'M_FORBIDDEN',
      ]);
      assert.deepEqual(await admin.refused('POST', `/v1/join/${enc(open)}`, { user_id: '@x:elsewhere' }), [
        400,
        'M_INVALID_PARAM',
      ]);
    });

    it('POST /join joins a user to a room of other servers through the servers in server_name', async () => {
      const { several, servers } = await SeveralServers.open(kind, ['a.test', 'b.test']);
      try {
        const adminOfA = await Administration.open(servers[0]);
        const cleo = await servers[0].registerClient('cleo');
        const roomId = await (await servers[1].registerClient('dora')).createRoom({ preset: 'public_chat' });
        const path = `/v1/join/${enc(roomId)}`;
        assert.deepEqual(await adminOfA.do('POST', path, { user_id: cleo.id }, { server_name: 'b.test' }), {
          room_id: roomId,
        });
        const { joined_rooms: joined } = await cleo.do('GET', '/joined_rooms');
        assert.deepEqual(joined, [roomId]);
      } finally {
        await several.stop();
      }
    });

    it('POST /join, /make_room_admin and DELETE /rooms/{roomId} refuse deactivated users, and /make_room_admin also local users without an account', async () => {
      const deactivated = await TestClient.register(server, 'gone');
      await admin.do('POST', `/v1/deactivate/${deactivated.id}`, {});
      const roomId = await anna.createRoom({ preset: 'public_chat' });
      const path = `/v1/rooms/${enc(roomId)}`;
      const missing = [404, 'M_NOT_FOUND'];
      const body = { user_id: deactivated.id };
      assert.deepEqual(await admin.refused('POST', `/v1/join/${enc(roomId)}`, body), missing);
      assert.deepEqual(await admin.refused('POST', `${path}/make_room_admin`, body), missing);
      const unknown = { user_id: '@nobody:test' };
      assert.deepEqual(await admin.refused('POST', `${path}/make_room_admin`, unknown), missing);
      for (const version of ['v1', 'v2']) {
        const refused = await admin.refused('DELETE', `/${version}/rooms/${enc(roomId)}`, {
          new_room_user_id: deactivated.id,
        });
        assert.deepEqual(refused, missing, version);
      }
      assert.deepEqual((await admin.do('GET', `${path}/members`))['members'], [anna.id]);
      const levels = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.power_levels/`);
      assert.deepEqual(levels['users'], { [anna.id]: 100 });
      await admin.do('POST', `${path}/make_room_admin`, { user_id: '@carla:elsewhere.example' });
    });
  });
});
