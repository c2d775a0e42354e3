import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../test/support/servers/server.ts';
import { enc, TestClient } from '../../test/support/users/test-client.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('PUT /rooms/{roomId}/state', () => {
    let server: TestServer;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      server = await startTestServer({ database: open.kind });
      [anna, ben] = [await TestClient.register(server, 'anna'), await TestClient.register(server, 'ben')];
    });
    after(() => server.stop());

    const put = async (user: TestClient, roomId: string, type: string, content: unknown, key = '') => {
      const path = `/rooms/${enc(roomId)}/state/${type}/${enc(key)}`;
      const { status, body } = await user.call('PUT', path, content);
      return [status, body['errcode']];
    };
    const accepted = [200, undefined];
    const badJson = [400, 'M_BAD_JSON'];
    const invalidParam = [400, 'M_INVALID_PARAM'];

    it('refuses malformed power levels and memberships with 400 M_BAD_JSON', async () => {
      const roomId = await anna.createRoom();
      await ben.join(roomId);
      for (const content of [
        { ban: '50' },
        { users: 5 },
        { users: { [ben.id]: '50' } },
        { users: { ben: 50 } },
        { events: { 'm.room.name': null } },
        { notifications: { room: 'x' } },
      ]) {
        assert.deepEqual(await put(anna, roomId, 'm.room.power_levels', content), badJson);
      }
      const unchanged = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.power_levels`);
      assert.deepEqual(await put(anna, roomId, 'm.room.power_levels', unchanged), accepted);
      assert.deepEqual(await put(ben, roomId, 'm.room.power_levels', unchanged), [403, 'M_FORBIDDEN']);
      for (const userId of [anna.id, ben.id]) {
        assert.deepEqual(await put(anna, roomId, 'm.room.member', { membership: 'dance' }, userId), badJson);
      }
    });

    it('accepts power levels as strings in room version 9', async () => {
      const roomId = await anna.createRoom({ room_version: '9' });
      const levels = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.power_levels`);
      assert.deepEqual(await put(anna, roomId, 'm.room.power_levels', { ...levels, ban: '50' }), accepted);
    });

    it('answers 403 M_FORBIDDEN to users who are not joined, without disclosing the creators', async () => {
      const roomId = await anna.createRoom({ room_version: '12' });
      const users = { users: { [anna.id]: 100 } };
      assert.deepEqual(await put(anna, roomId, 'm.room.power_levels', users), badJson);
      assert.deepEqual(await put(ben, roomId, 'm.room.power_levels', users), [403, 'M_FORBIDDEN']);
    });

    it('refuses server ACLs that deny this server, and the redaction of a server ACL', async () => {
      const roomId = await anna.createRoom();
      for (const content of [{}, { allow: ['elsewhere'] }, { allow: ['*'], deny: ['te*'] }, { allow: '*' }]) {
        assert.deepEqual(await put(anna, roomId, 'm.room.server_acl', content), invalidParam);
      }
      const rules = { allow: ['*'], deny: ['evil.example'] };
      const eventId = await anna.setState(roomId, 'm.room.server_acl', rules);
      const refused = await anna.call('PUT', `/rooms/${enc(roomId)}/redact/${enc(eventId)}/1`, {});
      assert.deepEqual([refused.status, refused.body['errcode']], [403, 'M_FORBIDDEN']);
      assert.deepEqual(await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.server_acl`), rules);
    });

    it('refuses m.room.create, and a tombstone that names its own room, with 400 M_INVALID_PARAM', async () => {
      for (const room_version of ['11', '12']) {
        const roomId = await anna.createRoom({ room_version });
        assert.deepEqual(await put(anna, roomId, 'm.room.create', { room_version }), invalidParam);
        assert.deepEqual(await put(anna, roomId, 'm.room.create', { room_version }, 'key'), invalidParam);
        const tombstone = { body: 'moved', replacement_room: roomId };
        assert.deepEqual(await put(anna, roomId, 'm.room.tombstone', tombstone), invalidParam);
        const validTombstone = { body: 'moved', replacement_room: '!other:test' };
        assert.deepEqual(await put(anna, roomId, 'm.room.tombstone', validTombstone), accepted);
      }
    });

    it('accepts a server ACL that denies other ports of the host of this server', async () => {
      const serverWithPort = await startTestServer({
        database: open.kind,
        config: { server: { server_name: 'host.test:8448' } },
      });
      try {
        const carl = await TestClient.register(serverWithPort, 'carl');
        const roomId = await carl.createRoom();
        for (const [content, expected] of [
          [{ allow: ['*'], deny: ['host.test'] }, accepted],
          [{ allow: ['*'], deny: ['host.test:1'] }, accepted],
          [{ allow: ['*'], deny: ['host.test:8448'] }, invalidParam],
          [{ allow: ['*'], deny: ['host.*'] }, invalidParam],
        ] as const) {
          assert.deepEqual(await put(carl, roomId, 'm.room.server_acl', content), expected);
        }
      } finally {
        await serverWithPort.stop();
      }
    });

    it('accepts only aliases of the room in m.room.canonical_alias, and removes deleted aliases', async () => {
      const roomId = await anna.createRoom();
      const set = (content: object) => put(anna, roomId, 'm.room.canonical_alias', content);
      const [first, second] = [`#first-${open.kind}:test`, `#second-${open.kind}:test`];
      for (const alias of [first, second]) {
        await anna.do('PUT', `/directory/room/${enc(alias)}`, { room_id: roomId });
      }
      assert.deepEqual(await set({ alias: 5 }), badJson);
      assert.deepEqual(await set({ alt_aliases: [first, 5] }), badJson);
      assert.deepEqual(await set({ alt_aliases: ['first'] }), invalidParam);
      assert.deepEqual(await set({ alias: '#none:test' }), [400, 'M_BAD_ALIAS']);
      assert.deepEqual(await set({ alias: '#none:127.0.0.1:1' }), [400, 'M_BAD_ALIAS']);
      const remoteAliases = Array.from({ length: 21 }, (_, index) => `#some-${index}:elsewhere.example`);
      assert.deepEqual(await set({ alt_aliases: remoteAliases }), invalidParam);
      assert.deepEqual(await set({ alias: first, alt_aliases: [second, first], note: 'x' }), accepted);
      await anna.do('DELETE', `/directory/room/${enc(first)}`);
      const content = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.canonical_alias`);
      assert.deepEqual(content, { alt_aliases: [second], note: 'x' });
    });

    it('keeps a deleted alias in m.room.canonical_alias when the user lacks the power level', async () => {
      const roomId = await anna.createRoom();
      await ben.join(roomId);
      const alias = `#of-ben-${open.kind}:test`;
      await ben.do('PUT', `/directory/room/${enc(alias)}`, { room_id: roomId });
      await anna.setState(roomId, 'm.room.canonical_alias', { alias });
      await ben.do('DELETE', `/directory/room/${enc(alias)}`);
      assert.deepEqual(await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.canonical_alias`), { alias });
    });
  });
});
