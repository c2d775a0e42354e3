import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';
import { readPagesWhileChanging } from '../test/read-pages.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('users of the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({ database: kind });
      admin = await Administration.open(server);
    });
    after(() => server.stop());

    let users = 0;
    const newUser = () => TestClient.register(server, `user${users++}`);
    const loginStatus = async (user: string, password: string) => {
      const body = { type: 'm.login.password', identifier: { type: 'm.id.user', user }, password };
      const answer = await server.api('POST', '/_matrix/client/v3/login', { body });
      return [answer.status, answer.body['errcode']];
    };
    const whoami = async (token: string) =>
      (await server.api('GET', '/_matrix/client/v3/account/whoami', { token })).status;

    it('PUT /users/{userId} creates an account with all its properties, which can log in', async () => {
      const created = await admin.call('PUT', '/v2/users/@new:test', {
        password: 'secret password',
        displayname: 'Newcomer',
        avatar_url: 'mxc://test/abc',
        admin: true,
        user_type: 'support',
      });
      assert.equal(created.status, 201, created.raw);
      const { creation_ts, ...rest } = created.body;
      assert.ok(Number(creation_ts) > 1e9 && Number(creation_ts) < 1e11, 'seconds');
      assert.deepEqual(rest, {
        name: '@new:test',
        displayname: 'Newcomer',
        avatar_url: 'mxc://test/abc',
        threepids: [],
        external_ids: [],
        is_guest: false,
        admin: true,
        deactivated: false,
        erased: false,
        shadow_banned: false,
        locked: false,
        suspended: false,
        last_seen_ts: null,
        appservice_id: null,
        user_type: 'support',
        consent_server_notice_sent: null,
        consent_version: null,
        consent_ts: null,
      });
      assert.deepEqual(await admin.do('GET', '/v2/users/@new:test'), created.body);
      assert.deepEqual(await loginStatus('new', 'secret password'), [200, undefined]);
    });

    it('PUT /users/{userId} changes an account: profile, rights, type, lock and password', async () => {
      const user = await newUser();
      const path = `/v2/users/${user.id}`;
      const changed = await admin.call('PUT', path, {
        displayname: 'Other',
        admin: true,
        user_type: 'bot',
        locked: true,
        logout_devices: false,
        password: 'another one',
      });
      assert.equal(changed.status, 200, changed.raw);
      const { displayname, admin: isAdmin, user_type, locked } = changed.body;
      assert.deepEqual([displayname, isAdmin, user_type, locked], ['Other', true, 'bot', true]);
      await admin.do('PUT', path, { locked: false, admin: false, user_type: null, displayname: '' });
      assert.equal(await whoami(user.token), 200);
      const after = await admin.do('GET', path);
      assert.deepEqual(
        [after['displayname'], after['admin'], after['user_type'], after['locked']],
        [null, false, null, false],
      );
      assert.deepEqual(await loginStatus(user.id, 'another one'), [200, undefined]);
      await admin.do('PUT', path, { password: 'a third one' });
      assert.equal(await whoami(user.token), 401);
    });

    it('PUT /users/{userId} deactivates an account, and activates it again with a new password', async () => {
      const user = await newUser();
      const path = `/v2/users/${user.id}`;
      const roomId = await user.createRoom();
      assert.equal((await admin.do('PUT', path, { deactivated: true }))['deactivated'], true);
      assert.equal(await whoami(user.token), 401);
      assert.deepEqual(await admin.refused('PUT', path, { admin: true }), [400, 'M_INVALID_PARAM']);
      await admin.do('PUT', path, { deactivated: false, password: 'back again' });
      assert.deepEqual(await loginStatus(user.id, 'correct horse'), [403, 'M_FORBIDDEN']);
      assert.deepEqual(await loginStatus(user.id, 'back again'), [200, undefined]);
      assert.deepEqual(await admin.do('GET', `/v1/users/${user.id}/joined_rooms`), {
        joined_rooms: [],
        total: 0,
      });
      assert.deepEqual(await admin.do('GET', `/v1/users/${user.id}/memberships`), {
        memberships: { [roomId]: 'leave' },
      });
      await admin.do('POST', `/v1/deactivate/${user.id}`, { erase: true });
      assert.deepEqual(await admin.refused('PUT', path, { deactivated: false }), [400, 'M_INVALID_PARAM']);
    });

    it('PUT /users/{userId} rejects a request with an invalid property, and changes nothing', async () => {
      const user = await newUser();
      for (const [userId, change, refusal] of [
        [user.id, { displayname: 'Half', user_type: 'robot' }, [400, 'M_INVALID_PARAM']],
        [user.id, { displayname: 'Half', avatar_url: 'x'.repeat(2_000) }, [400, 'M_INVALID_PARAM']],
        [user.id, { displayname: 'Half', locked: true, deactivated: true }, [400, 'M_INVALID_PARAM']],
        [user.id, { displayname: 'Half', admin: 'yes' }, [400, 'M_BAD_JSON']],
        [
          user.id,
          { displayname: 'Half', threepids: [{ medium: 'fax', address: 'a@b.c' }] },
          [400, 'M_INVALID_PARAM'],
        ],
        ['@a:elsewhere', { displayname: 'Half' }, [400, 'M_INVALID_PARAM']],
        ['nonsense', {}, [400, 'M_INVALID_PARAM']],
        ['@UPPER:test', {}, [400, 'M_INVALID_USERNAME']],
        ['@12345:test', {}, [400, 'M_INVALID_USERNAME']],
        ['@admin:test', { admin: false }, [400, 'M_INVALID_PARAM']],
        ['@admin:test', { deactivated: true }, [400, 'M_INVALID_PARAM']],
      ] as const) {
        assert.deepEqual(await admin.refused('PUT', `/v2/users/${enc(userId)}`, change), refusal, userId);
      }
      assert.deepEqual(await admin.refused('PUT', '/v2/users/@bodiless:test'), [400, 'M_NOT_JSON']);
      assert.deepEqual(await admin.refused('GET', '/v2/users/@bodiless:test'), [404, 'M_NOT_FOUND']);
      assert.equal((await admin.do('GET', `/v2/users/${user.id}`))['displayname'], user.id.slice(1, -5));
      assert.deepEqual(await admin.refused('GET', '/v2/users/@nobody:test'), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await admin.refused('GET', `/v2/users/${enc('@a\0b:test')}`), [
        400,
        'M_INVALID_PARAM',
      ]);
    });

    it('PUT /users/{userId} with an avatar that the options forbid is answered 403 M_FORBIDDEN, and creates and changes no account', async () => {
      const strict = await startTestServer({ database: kind, config: { profiles: { max_avatar_size: 10 } } });
      try {
        const operator = await Administration.open(strict);
        const user = await TestClient.register(strict, 'user');
        const change = { displayname: 'Half', admin: true, avatar_url: 'mxc://test/unknown' };
        for (const userId of ['@brandnew:test', user.id]) {
          const refused = await operator.refused('PUT', `/v2/users/${userId}`, change);
          assert.deepEqual(refused, [403, 'M_FORBIDDEN'], userId);
        }
        assert.deepEqual(await operator.refused('GET', '/v2/users/@brandnew:test'), [404, 'M_NOT_FOUND']);
        const { displayname, admin: isAdmin } = await operator.do('GET', `/v2/users/${user.id}`);
        assert.deepEqual([displayname, isAdmin], ['user', false]);
      } finally {
        await strict.stop();
      }
    });

    it('PUT /users/{userId} replaces the third-party ids of an account, by which GET /threepid finds the user', async () => {
      const [user, other] = [await newUser(), await newUser()];
      const path = `/v2/users/${user.id}`;
      const email = (address: string) => ({ medium: 'email', address });
      await admin.do('PUT', path, { threepids: [email('One@Example.org'), email('two@example.org')] });
      await admin.do('PUT', path, { threepids: [email('one@example.org'), email('three@example.org')] });
      const { threepids } = await admin.do('GET', path);
      const found = threepids as { address: string; added_at: number; validated_at: number }[];
      assert.deepEqual(found.map(({ address }) => address).toSorted(), [
        'one@example.org',
        'three@example.org',
      ]);
      assert.ok(found.every(({ added_at, validated_at }) => added_at > 1e12 && validated_at > 1e12));
      const owner = await admin.do('GET', '/v1/threepid/email/users/one@example.org');
      assert.deepEqual(owner, { user_id: user.id });
      const missing = await admin.refused('GET', '/v1/threepid/email/users/two@example.org');
      assert.deepEqual(missing, [404, 'M_NOT_FOUND']);
      const taken = { displayname: 'Half', threepids: [email('ONE@example.org')] };
      assert.deepEqual(await admin.refused('PUT', `/v2/users/${other.id}`, taken), [
        400,
        'M_THREEPID_IN_USE',
      ]);
      assert.deepEqual(await admin.refused('PUT', '/v2/users/@brandnew:test', taken), [
        400,
        'M_THREEPID_IN_USE',
      ]);
      assert.deepEqual(await admin.refused('GET', '/v2/users/@brandnew:test'), [404, 'M_NOT_FOUND']);
      await admin.do('PUT', path, { threepids: [] });
      assert.deepEqual((await admin.do('GET', path))['threepids'], []);
    });

    it('POST /reset_password sets a password and ends all sessions unless logout_devices is false', async () => {
      const user = await newUser();
      const path = `/v1/reset_password/${user.id}`;
      assert.deepEqual(await admin.do('POST', path, { new_password: 'one', logout_devices: false }), {});
      assert.equal(await whoami(user.token), 200);
      await admin.do('POST', path, { new_password: 'two' });
      assert.equal(await whoami(user.token), 401);
      assert.deepEqual(await loginStatus(user.id, 'two'), [200, undefined]);
      assert.deepEqual(await admin.refused('POST', path, {}), [400, 'M_BAD_JSON']);
      const unknown = await admin.refused('POST', '/v1/reset_password/@nobody:test', { new_password: 'x' });
      assert.deepEqual(unknown, [404, 'M_NOT_FOUND']);
    });

    it('GET and PUT /users/{userId}/admin show and change whether a user is an administrator, and refuse to remove the rights of the requester', async () => {
      const user = await newUser();
      const path = `/v1/users/${user.id}/admin`;
      assert.deepEqual(await admin.do('GET', path), { admin: false });
      assert.equal((await user.ask('GET', '/_synapse/admin/v1/registration_tokens', undefined)).status, 403);
      await admin.do('PUT', path, { admin: true });
      assert.deepEqual(await admin.do('GET', path), { admin: true });
      assert.equal((await user.ask('GET', '/_synapse/admin/v1/registration_tokens', undefined)).status, 200);
      await admin.do('PUT', path, { admin: false });
      assert.equal((await user.ask('GET', '/_synapse/admin/v1/registration_tokens', undefined)).status, 403);
      assert.deepEqual(await admin.refused('PUT', '/v1/users/@admin:test/admin', { admin: false }), [
        400,
        'M_INVALID_PARAM',
      ]);
    });

    it('PUT /suspend suspends an account, and ends the suspension', async () => {
      const user = await newUser();
      const room = await user.createRoom();
      const send = async () =>
        (await user.call('PUT', `/rooms/${enc(room)}/send/m.room.message/${users++}`, { body: 'x' })).status;
      await admin.do('PUT', `/v1/suspend/${user.id}`, { suspend: true });
      assert.equal(await send(), 403);
      assert.equal((await admin.do('GET', `/v2/users/${user.id}`))['suspended'], true);
      await admin.do('PUT', `/v1/suspend/${user.id}`, { suspend: false });
      assert.equal(await send(), 200);
    });

    it('POST /users/{userId}/login returns a token without a device, which /logout/all of the user does not end', async () => {
      const user = await newUser();
      const path = `/v1/users/${user.id}/login`;
      const token = String((await admin.do('POST', path, {}))['access_token']);
      const me = await server.api('GET', '/_matrix/client/v3/account/whoami', { token });
      assert.deepEqual([me.body['user_id'], me.body['device_id']], [user.id, undefined]);
      assert.equal(((await user.do('GET', '/devices'))['devices'] as unknown[]).length, 1);
      await user.do('POST', '/logout/all', {});
      assert.equal(await whoami(token), 200);
      assert.equal((await server.api('POST', '/_matrix/client/v3/logout', { token, body: {} })).status, 200);
      assert.equal(await whoami(token), 401);
      const expired = await admin.do('POST', path, { valid_until_ms: 1 });
      assert.equal(await whoami(String(expired['access_token'])), 401);
      assert.deepEqual(await admin.refused('POST', '/v1/users/@admin:test/login', {}), [
        400,
        'M_INVALID_PARAM',
      ]);
    });

    it('POST /logout/all of an administrator ends the sessions that the administrator opened as other users', async () => {
      const user = await newUser();
      const other = await newUser();
      await admin.do('PUT', `/v1/users/${other.id}/admin`, { admin: true });
      const path = `/_synapse/admin/v1/users/${user.id}/login`;
      const token = String((await other.ask('POST', path, {})).body['access_token']);
      const kept = String((await admin.do('POST', `/v1/users/${user.id}/login`, {}))['access_token']);
      assert.equal(await whoami(token), 200);
      await other.do('POST', '/logout/all', {});
      assert.deepEqual([await whoami(token), await whoami(kept), await whoami(user.token)], [401, 200, 200]);
      await admin.do('POST', `/v1/deactivate/${user.id}`, {});
      assert.equal(await whoami(kept), 401);
    });

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
      const [own] = (await admin.do('GET', path))['devices'] as { device_id: string }[];
      await admin.do('POST', `/v2/users/${user.id}/delete_devices`, { devices: [own!.device_id] });
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

    it('GET /whois shows the addresses of a user, and GET /accountdata the account data', async () => {
      const user = await newUser();
      const roomId = await user.createRoom();
      await user.do('PUT', `/user/${user.id}/account_data/m.example`, { a: 1 });
      await user.do('PUT', `/user/${user.id}/rooms/${enc(roomId)}/account_data/m.example`, { b: 2 });
      await admin.do('GET', `/v2/users/${user.id}/devices`);
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
      assert.deepEqual(Object.fromEntries(Object.keys(pusher).map((name) => [name, found?.[name]])), pusher);
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
      const [user, guest] = [await newUser(), await newUser()];
      const [first, second] = [await user.createRoom(), await user.createRoom()];
      for (const roomId of [first, second]) {
        await user.membership('invite', roomId, guest);
        await guest.join(roomId);
      }
      await user.send(first, 'm.room.message', { msgtype: 'm.text', body: 'x', membership: 'invite' });
      await user.do('PUT', `/profile/${enc(user.id)}/displayname`, { displayname: 'Renamed' });
      await guest.leave(second);
      const count = async (userId: string, from_ts: number) => [
        (await admin.do('GET', `/v1/users/${userId}/sent_invite_count`, undefined, { from_ts }))[
          'invite_count'
        ],
        (await admin.do('GET', `/v1/users/${userId}/cumulative_joined_room_count`, undefined, { from_ts }))[
          'cumulative_joined_room_count'
        ],
      ];
      assert.deepEqual(await count(user.id, 0), [2, 2]);
      assert.deepEqual(await count(guest.id, 0), [0, 2]);
      assert.deepEqual(await count(user.id, 9e12), [0, 0]);
      const path = `/v1/users/${user.id}/sent_invite_count`;
      assert.deepEqual(await admin.refused('GET', path), [400, 'M_MISSING_PARAM']);
      const none = await admin.refused('GET', '/v1/users/@none:test/sent_invite_count', undefined, {
        from_ts: 0,
      });
      assert.deepEqual(none, [404, 'M_NOT_FOUND']);
    });

    it('GET /auth_providers/{provider}/users/{externalId} finds the user of an external id that PUT /users/{userId} has set', async () => {
      const path = '/v1/auth_providers/oidc-x/users/12%2F34';
      assert.deepEqual(await admin.refused('GET', path), [404, 'M_NOT_FOUND']);
      const [owner, other] = [await newUser(), await newUser()];
      const external_ids = [
        { auth_provider: 'oidc-x', external_id: '12/34' },
        { auth_provider: 'saml', external_id: 'one' },
      ];
      const put = await admin.do('PUT', `/v2/users/${owner.id}`, { external_ids });
      assert.deepEqual(put['external_ids'], external_ids);
      assert.deepEqual(await admin.do('GET', path), { user_id: owner.id });
      const stolen = { external_ids: [external_ids[1]], displayname: 'Thief' };
      assert.deepEqual(await admin.refused('PUT', `/v2/users/${other.id}`, stolen), [409, 'M_UNKNOWN']);
      assert.notEqual((await admin.do('GET', `/v2/users/${other.id}`))['displayname'], 'Thief');
      for (const refused of [
        { auth_provider: 'oidc-x', external_id: 'a\0' },
        { auth_provider: 'a\0', external_id: '1' },
      ]) {
        const change = { external_ids: [refused] };
        assert.deepEqual(await admin.refused('PUT', `/v2/users/${other.id}`, change), [
          400,
          'M_INVALID_PARAM',
        ]);
      }
      for (const hostile of ['a%00/users/b', 'a/users/b%00'])
        assert.deepEqual(await admin.refused('GET', `/v1/auth_providers/${hostile}`), [404, 'M_NOT_FOUND']);
      const emptied = await admin.do('PUT', `/v2/users/${owner.id}`, { external_ids: [] });
      assert.deepEqual(emptied['external_ids'], []);
      assert.deepEqual(await admin.refused('GET', path), [404, 'M_NOT_FOUND']);
      const moved = await admin.do('PUT', `/v2/users/${other.id}`, { external_ids });
      assert.deepEqual(moved['external_ids'], external_ids);
    });

    it('GET /username_available says whether a user name is free, taken or invalid', async () => {
      const available = (username: string) =>
        admin.call('GET', '/v1/username_available', undefined, { username });
      assert.deepEqual((await available('free')).body, { available: true });
      assert.equal((await available('ADMIN')).body['errcode'], 'M_USER_IN_USE');
      assert.equal((await available('ä')).body['errcode'], 'M_INVALID_USERNAME');
    });
  });
});
