import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';
import { readPagesWhileChanging } from '../test/read-pages.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('devices, rooms and other data of users in the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
    });
    after(() => server.stop());

    let users = 0;
    const newUser = () => TestClient.register(server, `user${users++}`);
    const whoami = async (token: string) =>
      (await server.api('GET', '/_matrix/client/v3/account/whoami', { token })).status;

    it('lists, shows, creates, renames and deletes the devices of a user', async () => {
      const user = await newUser();
      const path = `/v2/users/${user.id}/devices`;
      await admin.do('POST', path, { device_id: 'EXTRA' });
      await admin.do('PUT', `${path}/EXTRA`, { display_name: 'spare' });
      const extra = await admin.do('GET', `${path}/EXTRA`);
      assert.deepEqual(extra, {
        device_id: 'EXTRA',
        user_id: user.id,
        display_name: 'spare',
        last_seen_ip: null,
        last_seen_user_agent: null,
        last_seen_ts: null,
        dehydrated: false,
      });
      const { devices, total } = await admin.do('GET', path);
      assert.deepEqual([total, (devices as { device_id: string }[]).length], [2, 2]);
      await admin.do('DELETE', `${path}/EXTRA`);
      assert.deepEqual(await admin.refused('GET', `${path}/EXTRA`), [404, 'M_NOT_FOUND']);
      const [remaining] = (await admin.do('GET', path))['devices'] as { device_id: string }[];
      await admin.do('POST', `/v2/users/${user.id}/delete_devices`, { devices: [remaining!.device_id] });
      assert.equal(await whoami(user.token), 401);
      assert.equal((await admin.do('GET', path))['total'], 0);
      assert.deepEqual(await admin.refused('GET', '/v2/users/@nobody:test/devices'), [404, 'M_NOT_FOUND']);
    });

    it('POST /devices creates no device for a deactivated user', async () => {
      const { id } = await newUser();
      await admin.do('POST', `/v1/deactivate/${id}`, {});
      const path = `/v2/users/${id}/devices`;
      assert.deepEqual(await admin.refused('POST', path, { device_id: 'LATE' }), [404, 'M_NOT_FOUND']);
      assert.equal((await admin.do('GET', path))['total'], 0);
    });

    it('GET /whois shows the IP addresses of a user, GET /accountdata the account data, and GET /joined_rooms the rooms', async () => {
      const user = await newUser();
      const roomId = await user.createRoom();
      await user.do('PUT', `/user/${user.id}/account_data/m.example`, { a: 1 });
      await user.do('PUT', `/user/${user.id}/rooms/${enc(roomId)}/account_data/m.example`, { b: 2 });
      const whois = await admin.do('GET', `/v1/whois/${user.id}`);
      assert.equal(whois['user_id'], user.id);
      assert.equal(JSON.stringify(whois['devices']).includes('"ip":"127.0.0.1"'), true);
      assert.deepEqual(await admin.do('GET', `/v1/users/${user.id}/accountdata`), {
        account_data: { global: { 'm.example': { a: 1 } }, rooms: { [roomId]: { 'm.example': { b: 2 } } } },
      });
      assert.deepEqual(await admin.do('GET', `/v1/users/${user.id}/joined_rooms`), {
        joined_rooms: [roomId],
        total: 1,
      });
    });

    it('the details and the list of users contain the time of a request that the user has sent just before', async () => {
      const times: Record<string, (id: string) => Promise<Record<string, unknown>>> = {
        details: (id) => admin.do('GET', `/v2/users/${id}`),
        list: async (id) => {
          const { users } = await admin.do('GET', '/v2/users', undefined, { user_id: id });
          return (users as Record<string, unknown>[])[0]!;
        },
      };
      for (const [name, read] of Object.entries(times)) {
        const user = await newUser();
        const start = Date.now();
        await user.do('GET', '/account/whoami');
        assert.ok(Number((await read(user.id))['last_seen_ts']) >= start, name);
      }
    });

    it('GET /users/{userId}/pushers lists the pushers of a user with the fields of the reference server', async () => {
      const user = await newUser();
      const path = `/v1/users/${user.id}/pushers`;
      assert.deepEqual(await admin.do('GET', path), { pushers: [], total: 0 });
      const pusher = {
        app_display_name: 'Example',
        app_id: 'org.example.phone',
        data: { url: 'https://push.example.org/_matrix/push/v1/notify', format: 'event_id_only' },
        device_display_name: 'Phone',
        kind: 'http',
        lang: 'en',
        profile_tag: 'tag',
        pushkey: 'key',
      };
      await user.do('POST', '/pushers/set', pusher);
      const { pushers, total } = await admin.do('GET', path);
      const [found] = pushers as Record<string, unknown>[];
      assert.deepEqual([total, (pushers as unknown[]).length], [1, 1]);
      const { device_id: deviceId } = await user.do('GET', '/account/whoami');
      assert.deepEqual(found, { ...pusher, enabled: true, device_id: deviceId });
      assert.deepEqual(await admin.refused('GET', '/v1/users/@nobody:test/pushers'), [404, 'M_NOT_FOUND']);
    });

    it('GET /users/{userId}/rooms lists the rooms of a user with their names, page by page', async () => {
      const user = await newUser();
      const roomIds = [await user.createRoom({ name: 'Kitchen' }), await user.createRoom()].sort();
      await user.leave(roomIds[1]!);
      const path = `/v1/users/${user.id}/rooms`;
      type Room = { room_id: string; name: string | null; membership: string; joined_members: number | null };
      const first = await admin.do('GET', path, undefined, { limit: 1 });
      const second = await admin.do('GET', path, undefined, { from: Number(first['next_token']) });
      assert.deepEqual([first['total'], second['next_token']], [2, undefined]);
      const rooms = [...(first['rooms'] as Room[]), ...(second['rooms'] as Room[])];
      assert.deepEqual(
        rooms.map((room) => [room.room_id, room.membership, room.joined_members]),
        [
          [roomIds[0], 'join', 1],
          [roomIds[1], 'leave', 0],
        ],
      );
      assert.ok(rooms.some(({ name }) => name === 'Kitchen'));
      assert.deepEqual(await admin.refused('GET', '/v1/users/nonsense/rooms'), [400, 'M_INVALID_PARAM']);
    });

    it('GET /users/{userId}/rooms lists each room once when the user joins and forgets other rooms between two pages', async () => {
      const user = await newUser();
      const permanent: string[] = [];
      for (let index = 0; index < 6; index += 1) permanent.push(await user.createRoom());
      permanent.sort();
      let passing = [await user.createRoom(), await user.createRoom()];
      const keys = await readPagesWhileChanging(
        async (from = 0) => {
          const path = `/v1/users/${user.id}/rooms`;
          const page = await admin.do('GET', path, undefined, { limit: 2, from });
          const rooms = page['rooms'] as { room_id: string }[];
          return {
            keys: rooms.map(({ room_id: roomId }) => roomId),
            next: page['next_token'] as number | undefined,
          };
        },
        async () => {
          for (const roomId of passing) {
            await user.leave(roomId);
            await user.do('POST', `/rooms/${enc(roomId)}/forget`, {});
          }
          passing = [await user.createRoom(), await user.createRoom()];
        },
      );
      assert.deepEqual(
        keys.filter((key) => permanent.includes(key)),
        permanent,
      );
    });

    it('GET /sent_invite_count and /cumulative_joined_room_count count invites and joined rooms since a time', async () => {
      const [user, invitee] = [await newUser(), await newUser()];
      const [first, second] = [await user.createRoom(), await user.createRoom()];
      for (const roomId of [first, second]) {
        await user.membership('invite', roomId, invitee);
        await invitee.join(roomId);
      }
      await user.send(first, 'm.room.message', { msgtype: 'm.text', body: 'x', membership: 'invite' });
      await user.do('PUT', `/profile/${enc(user.id)}/displayname`, { displayname: 'Renamed' });
      await invitee.leave(second);
      const count = async (userId: string, from_ts: number) => [
        (await admin.do('GET', `/v1/users/${userId}/sent_invite_count`, undefined, { from_ts }))[
          'invite_count'
        ],
        (await admin.do('GET', `/v1/users/${userId}/cumulative_joined_room_count`, undefined, { from_ts }))[
          'cumulative_joined_room_count'
        ],
      ];
      assert.deepEqual(await count(user.id, 0), [2, 2]);
      assert.deepEqual(await count(invitee.id, 0), [0, 2]);
      assert.deepEqual(await count(user.id, 9e12), [0, 0]);
      const path = `/v1/users/${user.id}/sent_invite_count`;
      assert.deepEqual(await admin.refused('GET', path), [400, 'M_MISSING_PARAM']);
      const none = await admin.refused('GET', '/v1/users/@none:test/sent_invite_count', undefined, {
        from_ts: 0,
      });
      assert.deepEqual(none, [404, 'M_NOT_FOUND']);
    });
  });
});
