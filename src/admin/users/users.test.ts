import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { Administration } from '../test/administration.ts';

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

    it('PUT /users/{userId} creates an account with all its properties; the user can log in', async () => {
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

    it('PUT /users/{userId} replaces the third-party ids of an account; GET /threepid finds the user by the new ids', async () => {
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

    it('GET /auth_providers/{provider}/users/{externalId} finds a user by an external id that PUT /users/{userId} has set', async () => {
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
