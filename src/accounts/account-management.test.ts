import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import {
  AccountsServer,
  type AccountsServerOptions,
  minute,
  openOptions,
  type Person,
  passwordLogin,
} from '../../test/support/accounts-server.ts';
import { forEachDatabase } from '../../test/support/databases.ts';
import { Jobs, jobMigrations } from '../kernel/jobs/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import type { AccountChange } from './accounts.ts';
import type { AccountTables } from './tables.ts';

forEachDatabase((open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());
  const start = async (setup: AccountsServerOptions = {}) => {
    server = await AccountsServer.start(open, setup);
  };
  const whoami = (token: string) => server.call('GET', '/account/whoami', { token });

  /** Sends a request, and again with the user's password when it is asked for. */
  async function confirmed(person: Person, method: string, path: string, body: Record<string, unknown> = {}) {
    const asked = await server.call(method, path, { token: person.token, body });
    assert.equal(asked.status, 401, JSON.stringify(asked.body));
    assert.deepEqual(asked.body['flows'], [{ stages: ['m.login.password'] }]);
    const auth = { ...passwordLogin(person.userId), session: asked.body['session'] };
    return server.call(method, path, { token: person.token, body: { ...body, auth } });
  }

  describe('changing the password', () => {
    const path = '/account/password';

    it('ends all other sessions', async () => {
      await start();
      const phone = await server.register('alice', { refresh_token: true });
      const laptop = await server.login('alice');
      await whoami(laptop.token);
      const answer = await confirmed(phone, 'POST', path, { new_password: 'new' });
      assert.deepEqual([answer.status, answer.body], [200, {}]);
      assert.equal((await whoami(laptop.token)).status, 401);
      assert.equal((await whoami(phone.token)).status, 200);
      const refreshed = await server.call('POST', '/refresh', {
        body: { refresh_token: phone.refreshToken },
      });
      assert.equal(refreshed.status, 200);
      assert.equal((await server.call('POST', '/login', { body: passwordLogin('alice') })).status, 403);
      assert.equal(
        (await server.call('POST', '/login', { body: passwordLogin('alice', 'new') })).status,
        200,
      );
    });

    it('leaves them alone when told to', async () => {
      await start();
      const phone = await server.register('alice');
      const laptop = await server.login('alice');
      await confirmed(phone, 'POST', path, { new_password: 'new', logout_devices: false });
      assert.equal((await whoami(laptop.token)).status, 200);
    });

    it("needs the user's own password, for the change that was asked for", async () => {
      await start();
      const alice = await server.register('alice');
      await server.register('bob', { password: 'other' });
      const body = { new_password: 'new' };
      const asked = await server.call('POST', path, { token: alice.token, body });
      const { session } = asked.body;
      for (const [user, password] of [
        ['alice', 'guess'],
        ['bob', 'other'],
      ] as const) {
        const auth = { ...passwordLogin(user, password), session };
        const answer = await server.call('POST', path, { token: alice.token, body: { ...body, auth } });
        assert.deepEqual([answer.status, answer.body['errcode']], [401, 'M_FORBIDDEN']);
        assert.equal(answer.body['session'], session);
      }
      const auth = { ...passwordLogin('alice'), session };
      const deactivate = await server.call('POST', '/account/deactivate', {
        token: alice.token,
        body: { auth },
      });
      assert.deepEqual([deactivate.status, deactivate.body['errcode']], [403, 'M_FORBIDDEN']);
      const dummy = { type: 'm.login.dummy', session };
      const unknown = await server.call('POST', path, { token: alice.token, body: { ...body, auth: dummy } });
      assert.deepEqual([unknown.status, unknown.body['errcode']], [401, 'M_UNRECOGNIZED']);
    });

    it('heeds the policy', async () => {
      const policy = {
        enabled: true,
        minimum_length: 8,
        require_digit: true,
        require_symbol: true,
        require_lowercase: true,
        require_uppercase: true,
      };
      const password_config = { ...openOptions.password_config, policy };
      await start({ options: { password_config } });
      for (const [password, errcode] of [
        ['aB1-', 'M_PASSWORD_TOO_SHORT'],
        ['abcdEFG-', 'M_PASSWORD_NO_DIGIT'],
        ['abcdEFG1', 'M_PASSWORD_NO_SYMBOL'],
        ['ABCDEFG1-', 'M_PASSWORD_NO_LOWERCASE'],
        ['abcdefg1-', 'M_PASSWORD_NO_UPPERCASE'],
      ] as const) {
        const { body } = await server.call('POST', '/register', { body: { username: 'bob', password } });
        assert.equal(body['errcode'], errcode);
      }
      const { body } = await server.call('POST', '/register', {
        body: { username: 'bob', password: 'aBcdef1-' },
      });
      assert.equal(body['errcode'], undefined);
    });

    it('is refused where passwords can not be changed', async () => {
      const password_config = { ...openOptions.password_config, enabled: 'only_for_reauth' as const };
      await start({ options: { password_config } });
      const { session } = await server.slice.registration.create({
        userId: server.slice.registration.userIdFor('alice'),
        password: 'password',
        login: { refreshable: false },
      });
      const body = { new_password: 'new' };
      const answer = await server.call('POST', path, { token: session!.accessToken, body });
      assert.deepEqual([answer.status, answer.body['errcode']], [403, 'M_FORBIDDEN']);
    });
  });

  describe('deactivation', () => {
    const remaining = async () => {
      const reader = server.database.reader<AccountTables & { devices: object; user_ips: object }>();
      const count = async (
        table: 'access_tokens' | 'refresh_tokens' | 'interactive_sessions' | 'devices' | 'user_ips',
      ) => (await reader.selectFrom(table).selectAll().execute()).length;
      return Promise.all([
        count('access_tokens'),
        count('refresh_tokens'),
        count('interactive_sessions'),
        count('devices'),
        count('user_ips'),
      ]);
    };

    it('leaves nothing to get in with', async () => {
      await start();
      const changes: AccountChange[] = [];
      server.slice.accounts.accountStream.subscribe((change) => changes.push(change));
      const alice = await server.register('alice', { refresh_token: true });
      await server.login('alice');
      await server.call('POST', '/delete_devices', { token: alice.token, body: { devices: ['X'] } });
      await server.slice.lastSeen.flush();
      const answer = await confirmed(alice, 'POST', '/account/deactivate', { erase: true });
      assert.deepEqual([answer.status, answer.body], [200, { id_server_unbind_result: 'success' }]);
      assert.deepEqual(await remaining(), [0, 0, 0, 0, 0]);
      assert.equal((await whoami(alice.token)).status, 401);
      const login = await server.call('POST', '/login', { body: passwordLogin('alice') });
      assert.deepEqual([login.status, login.body['errcode']], [403, 'M_USER_DEACTIVATED']);
      const taken = await server.call('POST', '/register', { body: { username: 'alice' } });
      assert.equal(taken.body['errcode'], 'M_USER_IN_USE');
      assert.equal(await server.slice.accounts.userExists('@alice:test'), false);
      assert.equal((await server.slice.accounts.getUser('@alice:test'))?.isErased, true);
      assert.deepEqual(changes, [
        { kind: 'registered', userId: '@alice:test', isGuest: false },
        { kind: 'deactivated', userId: '@alice:test', erase: true },
      ]);
    });

    it('is all or nothing', async () => {
      const deactivated = async () => {
        throw new Error('a companion fails');
      };
      await start({ extensions: () => ({ companions: [{ deactivated }] }) });
      const alice = await server.register('alice');
      await assert.rejects(server.slice.accounts.deactivate(alice.userId, false));
      assert.equal((await whoami(alice.token)).status, 200);
      await assert.rejects(server.slice.accounts.deactivate('@nobody:test', false), {
        errcode: 'M_NOT_FOUND',
      });
    });
  });

  describe('devices', () => {
    it('have a name that can be changed', async () => {
      await start();
      const { token } = await server.register('alice', {
        device_id: 'A',
        initial_device_display_name: 'Phone',
      });
      assert.deepEqual((await server.call('GET', '/devices/A', { token })).body, {
        device_id: 'A',
        display_name: 'Phone',
        last_seen_ip: '127.0.0.1',
        last_seen_ts: server.clock.now(),
      });
      await server.call('PUT', '/devices/A', { token, body: { display_name: 'Old phone' } });
      assert.equal((await server.call('GET', '/devices/A', { token })).body['display_name'], 'Old phone');
      for (const [path, body, errcode] of [
        ['/devices/B', {}, 'M_NOT_FOUND'],
        ['/devices/B', { display_name: 'x' }, 'M_NOT_FOUND'],
        ['/devices/A', { display_name: 'x'.repeat(101) }, 'M_TOO_LARGE'],
        ['/devices/A', { display_name: 'a\0' }, 'M_INVALID_PARAM'],
        ['/devices/A', { display_name: 1 }, 'M_BAD_JSON'],
      ] as const) {
        assert.equal((await server.call('PUT', path, { token, body })).body['errcode'], errcode);
      }
      const bob = await server.register('bob');
      assert.equal((await server.call('GET', '/devices/A', { token: bob.token })).status, 404);
    });

    it('say when they were last seen, written at most once a minute or when somebody asks', async () => {
      await start();
      const { token } = await server.register('alice', { device_id: 'A' });
      await whoami(token);
      const before = server.database.statistics.batches;
      for (let i = 0; i < 10; i++) await whoami(token);
      assert.equal(server.database.statistics.batches, before);
      server.clock.advance(minute);
      await server.slice.lastSeen.flush();
      assert.equal(server.database.statistics.batches, before + 1);
      const { body } = await server.call('GET', '/devices/A', { token });
      const last_seen_ts = server.clock.now();
      assert.deepEqual(body, { device_id: 'A', last_seen_ip: '127.0.0.1', last_seen_ts });
    });

    it('tell users, and administrators, where they were used', async () => {
      await start();
      const alice = await server.register('alice', { device_id: 'A' });
      const bob = await server.register('bob');
      await server.call('GET', '/account/whoami', {
        token: alice.token,
        headers: { 'x-forwarded-for': '192.0.2.7', 'user-agent': 'Teapot/1' },
      });
      await server.slice.lastSeen.flush();
      const whois = (token: string) => server.call('GET', '/admin/whois/@alice:test', { token });
      const connection = { ip: '192.0.2.7', last_seen: server.clock.now(), user_agent: 'Teapot/1' };
      const expected = {
        user_id: '@alice:test',
        devices: { A: { sessions: [{ connections: [connection] }] } },
      };
      assert.deepEqual((await whois(alice.token)).body, expected);
      assert.equal((await whois(bob.token)).body['errcode'], 'M_FORBIDDEN');
      await server.slice.accounts.setAdmin(bob.userId, true);
      assert.deepEqual((await whois(bob.token)).body, expected);
    });

    it('are deleted with their sessions once the user has confirmed it', async () => {
      await start();
      const phone = await server.register('alice', { device_id: 'PHONE' });
      const old = [
        await server.login('alice', { device_id: 'A' }),
        await server.login('alice', { device_id: 'B' }),
      ];
      for (const { token } of old) assert.equal((await whoami(token)).status, 200);
      assert.equal((await confirmed(phone, 'DELETE', '/devices/A')).status, 200);
      assert.equal((await whoami(old[0]!.token)).status, 401);
      assert.equal((await confirmed(phone, 'POST', '/delete_devices', { devices: ['A', 'B'] })).status, 200);
      assert.equal((await whoami(old[1]!.token)).status, 401);
      const { body } = await server.call('GET', '/devices', { token: phone.token });
      assert.deepEqual((body['devices'] as unknown[]).length, 1);
    });

    it('are deleted only as confirmed', async () => {
      await start();
      const { token } = await server.register('alice', { device_id: 'PHONE' });
      const asked = await server.call('DELETE', '/devices/A', { token });
      const auth = { ...passwordLogin('alice'), session: asked.body['session'] };
      const other = await server.call('DELETE', '/devices/PHONE', { token, body: { auth } });
      assert.deepEqual([other.status, other.body['errcode']], [403, 'M_FORBIDDEN']);
    });

    it('need no second confirmation while the first one lasts', async () => {
      await start({ options: { ui_auth: { session_timeout: 10 * minute } } });
      const alice = await server.register('alice');
      const remove = () => server.call('DELETE', '/devices/X', { token: alice.token });
      assert.equal((await remove()).status, 200);
      server.clock.advance(11 * minute);
      assert.equal((await remove()).status, 401);
      assert.equal((await confirmed(alice, 'DELETE', '/devices/X')).status, 200);
      assert.equal((await remove()).status, 200);
      const body = { new_password: 'new' };
      assert.equal(
        (await server.call('POST', '/account/password', { token: alice.token, body })).status,
        401,
      );
    });

    it('tell who follows them', async () => {
      await start();
      const users: string[] = [];
      server.slice.devices.deviceListStream.subscribe(({ userId }) => users.push(userId));
      const before = server.streams.current;
      const alice = await server.register('alice');
      await server.register('bob');
      await server.call('POST', '/logout', { token: alice.token });
      assert.deepEqual(users, ['@alice:test', '@bob:test', '@alice:test']);
      const { devices } = server.slice;
      assert.deepEqual((await devices.changedSince(before, server.streams.current)).sort(), [
        '@alice:test',
        '@bob:test',
      ]);
      assert.deepEqual(await devices.changedSince(server.streams.current, server.streams.current + 1), []);
    });

    it('[option: delete_stale_devices_after] go when nobody has used them for long, also when the server is started again and again', async () => {
      const hour = 60 * minute;
      await start({ options: { delete_stale_devices_after: 36 * hour }, migrations: jobMigrations });
      const { database, clock, slice } = server;
      const old = await server.register('alice');
      const deviceIds = async () => [
        ...((await slice.devices.names([old.userId])).get(old.userId)?.keys() ?? []),
      ];
      const runFor = async (duration: number) => {
        const jobs = new Jobs({ database, clock, log: silentLogger, alone: true });
        slice.housekeeping.register(jobs);
        await jobs.start();
        clock.advance(duration);
        await jobs.settled();
        await jobs.stop();
      };
      for (let run = 0; run < 3; run++) await runFor(10 * hour);
      const young = await server.login('alice');
      assert.deepEqual((await deviceIds()).sort(), [old.deviceId, young.deviceId].sort());
      for (let run = 0; run < 3; run++) await runFor(10 * hour);
      assert.deepEqual(await deviceIds(), [young.deviceId]);
      assert.equal((await whoami(old.token)).status, 401);
      assert.equal((await whoami(young.token)).status, 200);
    });
  });

  describe('locking', () => {
    it('is for administrators, and keeps out everybody but them', async () => {
      await start();
      const admin = await server.register('admin');
      const alice = await server.register('alice');
      const path = (userId: string) => `/_matrix/client/v1/admin/lock/${userId}`;
      const lock = (token: string, userId: string, locked: unknown) =>
        server.call('PUT', path(userId), { token, body: { locked } });
      assert.equal((await lock(admin.token, alice.userId, true)).body['errcode'], 'M_FORBIDDEN');
      await server.slice.accounts.setAdmin(admin.userId, true);
      assert.deepEqual((await lock(admin.token, alice.userId, true)).body, { locked: true });
      assert.equal((await whoami(alice.token)).body['errcode'], 'M_USER_LOCKED');
      const found = await server.call('GET', path(alice.userId), { token: admin.token });
      assert.deepEqual(found.body, { locked: true });
      assert.deepEqual((await lock(admin.token, alice.userId, false)).body, { locked: false });
      assert.equal((await whoami(alice.token)).status, 200);
      for (const [userId, status, errcode] of [
        ['@alice:elsewhere', 400, 'M_INVALID_PARAM'],
        ['@nobody:test', 404, 'M_NOT_FOUND'],
        ['@admin:test', 403, 'M_FORBIDDEN'],
      ] as const) {
        const answer = await lock(admin.token, userId, true);
        assert.deepEqual([answer.status, answer.body['errcode']], [status, errcode]);
      }
      assert.equal((await lock(admin.token, alice.userId, 'yes')).body['errcode'], 'M_BAD_JSON');
    });
  });

  describe('third-party identifiers', () => {
    it('are none', async () => {
      await start();
      const { token } = await server.register('alice');
      assert.deepEqual((await server.call('GET', '/account/3pid', { token })).body, { threepids: [] });
    });
  });
});
