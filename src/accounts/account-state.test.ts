import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import {
  AccountsServer,
  type AccountsServerOptions,
  passwordLogin,
} from '../../test/support/servers/accounts-server.ts';
import type { DeviceTables } from '../devices/index.ts';
import type { AccountChange } from './accounts.ts';
import type { AccountTables } from './tables.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());
  const start = async (setup: AccountsServerOptions = {}) => {
    server = await AccountsServer.start(open, setup);
  };
  const whoami = (token: string) => server.call('GET', '/account/whoami', { token });

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

    it('POST /account/deactivate deletes all tokens, devices and IP addresses of the user, and does not free the user name', async () => {
      await start();
      const changes: AccountChange[] = [];
      server.slice.accounts.accountStream.subscribe((change) => changes.push(change));
      const alice = await server.register('alice', { refresh_token: true });
      await server.login('alice');
      await server.call('POST', '/delete_devices', { token: alice.token, body: { devices: ['X'] } });
      await server.slice.lastSeen.flush();
      const answer = await server.callWithPassword(alice, 'POST', '/account/deactivate', { erase: true });
      assert.deepEqual([answer.status, answer.body], [200, { id_server_unbind_result: 'success' }]);
      assert.deepEqual(await remaining(), [0, 0, 0, 0, 0]);
      // The activity that was recorded before the deactivation must not be written afterwards.
      await server.slice.lastSeen.flush();
      assert.deepEqual(await remaining(), [0, 0, 0, 0, 0]);
      const activity = server.database.reader<DeviceTables>().selectFrom('user_activity').selectAll();
      assert.deepEqual(await activity.execute(), [{ user_id: '@alice:test', last_seen_at: 0 }]);
      assert.equal((await whoami(alice.token)).status, 401);
      const login = await server.call('POST', '/login', { body: passwordLogin('alice') });
      assert.deepEqual([login.status, login.body['errcode']], [403, 'M_USER_DEACTIVATED']);
      const wrong = await server.call('POST', '/login', { body: passwordLogin('alice', 'guess') });
      const unknown = await server.call('POST', '/login', { body: passwordLogin('nobody', 'guess') });
      assert.deepEqual([wrong.status, wrong.body], [unknown.status, unknown.body]);
      assert.deepEqual([wrong.status, wrong.body['errcode']], [403, 'M_FORBIDDEN']);
      const taken = await server.call('POST', '/register', { body: { username: 'alice' } });
      assert.equal(taken.body['errcode'], 'M_USER_IN_USE');
      assert.equal(await server.slice.accounts.userExists('@alice:test'), false);
      assert.equal((await server.slice.accounts.getUser('@alice:test'))?.isErased, true);
      assert.deepEqual(changes, [
        { kind: 'registered', userId: '@alice:test', isGuest: false },
        { kind: 'deactivated', userId: '@alice:test', erase: true, byAdmin: false },
      ]);
    });

    it('deactivation changes nothing when a lifecycle hook fails, and responds 404 M_NOT_FOUND for an unknown user', async () => {
      const deactivated = async () => {
        throw new Error('a lifecycle hook fails');
      };
      await start({ extensions: () => ({ lifecycleHooks: [{ deactivated }] }) });
      const alice = await server.register('alice');
      await assert.rejects(server.slice.accounts.deactivate(alice.userId, { erase: false, byAdmin: false }));
      assert.equal((await whoami(alice.token)).status, 200);
      await assert.rejects(
        server.slice.accounts.deactivate('@nobody:test', { erase: false, byAdmin: false }),
        {
          errcode: 'M_NOT_FOUND',
        },
      );
    });
  });

  describe('locking', () => {
    it('PUT /admin/lock lets only administrators lock and unlock accounts, and never locks an administrator', async () => {
      await start();
      const admin = await server.registerAdmin();
      const alice = await server.register('alice');
      const bob = await server.register('bob');
      const path = (userId: string) => `/_matrix/client/v1/admin/lock/${userId}`;
      const lock = (token: string, userId: string, locked: unknown) =>
        server.call('PUT', path(userId), { token, body: { locked } });
      assert.equal((await lock(bob.token, alice.userId, true)).body['errcode'], 'M_FORBIDDEN');
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
});
