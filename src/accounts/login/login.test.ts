import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { hash } from '@node-rs/bcrypt';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  AccountsServer,
  type AccountsServerOptions,
  passwordLogin,
} from '../../../test/support/servers/accounts-server.ts';
import type { AccountTables } from '../tables.ts';
import type { LoginType } from './login.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());
  const start = async (setup: AccountsServerOptions = {}) => {
    server = await AccountsServer.start(open, setup);
  };
  const login = (body: Record<string, unknown>) => server.call('POST', '/login', { body });
  const fails = async (status: number, errcode: string, body: Record<string, unknown>) => {
    const answer = await login(body);
    assert.deepEqual([answer.status, answer.body['errcode']], [status, errcode], JSON.stringify(answer.body));
    return answer;
  };

  describe('login', () => {
    it('lists the offered flows at GET /login', async () => {
      await start();
      assert.deepEqual((await server.call('GET', '/login')).body, { flows: [{ type: 'm.login.password' }] });
    });

    it('accepts a user id or a localpart in upper or lower case, in the identifier or in the deprecated member `user`', async () => {
      await start();
      await server.register('alice');
      for (const user of ['@alice:test', 'alice', 'Alice', '@ALICE:test']) {
        assert.equal((await server.login(user)).userId, '@alice:test');
      }
      const { body } = await login({ type: 'm.login.password', user: 'alice', password: 'password' });
      assert.equal(body['user_id'], '@alice:test');
    });

    it('logs in to the account whose name has exactly the given case when two accounts differ only in case, and rejects any other case', async () => {
      await start();
      await server.register('alice');
      await server.database.transaction<AccountTables, void>(async (writer) => {
        const row = await writer.selectFrom('users').selectAll().executeTakeFirstOrThrow();
        await writer
          .insertInto('users')
          .values({ ...row, user_id: '@Alice:test' })
          .execute();
      });
      assert.equal((await server.login('Alice')).userId, '@Alice:test');
      assert.equal((await server.login('alice')).userId, '@alice:test');
      await fails(403, 'M_FORBIDDEN', passwordLogin('ALICE'));
    });

    it('replaces imported password hashes and hashes of an older form when the user logs in, and rejects logins of locked and deactivated users who have imported hashes', async () => {
      await start({ options: { bcrypt_rounds: 5 } });
      await server.register('alice');
      const stored = () =>
        server.database
          .reader<AccountTables>()
          .selectFrom('users')
          .select('password_hash')
          .executeTakeFirstOrThrow()
          .then(({ password_hash }) => password_hash ?? '');
      const renewed = await stored();
      assert.match(renewed, /^\$2b\$05\$.{53}\$hmac-sha256$/);
      const imported = (await hash('password', { cost: 4 })).replace('$2b$', '$2y$');
      for (const password_hash of [imported, renewed.replace('$hmac-sha256', '')]) {
        await server.database.transaction<AccountTables, unknown>((writer) =>
          writer.updateTable('users').set({ password_hash }).execute(),
        );
        await fails(403, 'M_FORBIDDEN', passwordLogin('alice', 'guess'));
        assert.equal(await stored(), password_hash);
        await server.login('alice');
        const replaced = await stored();
        assert.match(replaced, /^\$2b\$05\$.{53}\$hmac-sha256$/);
        await server.login('alice');
        assert.equal(await stored(), replaced);
      }
      const change = (values: object) =>
        server.database.transaction<AccountTables, unknown>((writer) =>
          writer
            .updateTable('users')
            .set({ password_hash: imported, ...values })
            .execute(),
        );
      await change({ is_locked: 1 });
      await fails(401, 'M_USER_LOCKED', passwordLogin('alice'));
      await change({ is_locked: 0, is_deactivated: 1 });
      await fails(403, 'M_USER_DEACTIVATED', passwordLogin('alice'));
    });

    it('rejects an unknown user and a wrong password with the same response', async () => {
      await start();
      await server.register('alice');
      const wrong = await fails(403, 'M_FORBIDDEN', passwordLogin('alice', 'guess'));
      const unknown = await fails(403, 'M_FORBIDDEN', passwordLogin('nobody'));
      assert.deepEqual(unknown.body, wrong.body);
      await fails(403, 'M_FORBIDDEN', passwordLogin('@alice:elsewhere'));
      await fails(403, 'M_FORBIDDEN', passwordLogin('a\0b'));
      const identifier = { type: 'm.id.thirdparty', medium: 'email', address: 'alice@example.org' };
      await fails(403, 'M_FORBIDDEN', { ...passwordLogin('alice'), identifier });
    });

    it('rejects unknown login types and malformed bodies with the specified errcodes', async () => {
      await start();
      await fails(400, 'M_UNKNOWN', { type: 'm.login.magic' });
      await fails(400, 'M_BAD_JSON', {});
      await fails(400, 'M_MISSING_PARAM', { type: 'm.login.password', password: 'x' });
      await fails(400, 'M_MISSING_PARAM', { type: 'm.login.password', user: 'alice' });
      await fails(400, 'M_UNKNOWN', { ...passwordLogin('alice'), identifier: { type: 'm.id.telepathy' } });
      await fails(400, 'M_BAD_JSON', { ...passwordLogin('alice'), identifier: 'alice' });
      await fails(400, 'M_INVALID_PARAM', { ...passwordLogin('alice'), device_id: '' });
      await fails(413, 'M_TOO_LARGE', {
        ...passwordLogin('alice'),
        initial_device_display_name: 'x'.repeat(101),
      });
    });

    it('distinguishes passwords that share their first 72 bytes', async () => {
      await start();
      const long = 'x'.repeat(100);
      await server.register('alice', { password: `${long}1` });
      await fails(403, 'M_FORBIDDEN', passwordLogin('alice', `${long}2`));
      assert.equal((await login(passwordLogin('alice', `${long}1`))).status, 200);
    });

    it('accepts a password in any Unicode normalization form', async () => {
      await start();
      await server.register('alice', { password: 'caf\u00e9' });
      assert.equal((await login(passwordLogin('alice', 'cafe\u0301'))).status, 200);
    });

    it('closes the previous session of a device when it logs in again, and keeps the display name of the device', async () => {
      await start();
      const first = await server.register('alice', { device_id: 'PHONE' });
      await server.call('GET', '/account/whoami', { token: first.token });
      const second = await server.login('alice', {
        device_id: 'PHONE',
        initial_device_display_name: 'ignored',
      });
      assert.equal(second.deviceId, 'PHONE');
      assert.equal((await server.call('GET', '/account/whoami', { token: first.token })).status, 401);
      const { body } = await server.call('GET', '/devices', { token: second.token });
      const lastSeen = { last_seen_ip: '127.0.0.1', last_seen_ts: server.clock.now() };
      assert.deepEqual(body, { devices: [{ device_id: 'PHONE', display_name: null, ...lastSeen }] });
    });

    it('limits the rate of login attempts per account, also with the right password', async () => {
      await start({ burst: 3 });
      await server.register('alice');
      await fails(403, 'M_FORBIDDEN', passwordLogin('alice', '1'));
      await fails(403, 'M_FORBIDDEN', passwordLogin('Alice', '2'));
      await fails(403, 'M_FORBIDDEN', passwordLogin('@alice:test', '3'));
      const answer = await fails(429, 'M_LIMIT_EXCEEDED', passwordLogin('alice'));
      assert.ok((answer.body['retry_after_ms'] as number) > 0);
      assert.ok(Number(answer.headers.get('retry-after')) > 0);
      server.clock.advance(3_600_000);
      await server.login('alice');
    });

    it('passes the requester and the address of the client to a login type', async () => {
      const ipAndRequester: unknown[] = [];
      const type: LoginType = {
        type: 'test.requester',
        isOffered: true,
        async login(_body, { ip, authenticate }) {
          const requester = await authenticate();
          ipAndRequester.push(ip, requester?.userId);
          return { userId: '@alice:test' };
        },
      };
      await start({ extensions: () => ({ loginTypes: [type] }) });
      const { token } = await server.register('alice');
      const body = { type: 'test.requester' };
      assert.equal((await server.call('POST', '/login', { body, token })).status, 200);
      assert.equal((await server.call('POST', '/login', { body })).status, 200);
      assert.deepEqual(ipAndRequester, ['127.0.0.1', '@alice:test', '127.0.0.1', undefined]);
      const stale = await server.call('POST', '/login', { body, token: 'stale' });
      assert.deepEqual([stale.status, stale.body['errcode']], [401, 'M_UNKNOWN_TOKEN']);
    });

    it('accepts a password login with a stale access token, which clients send after a soft logout', async () => {
      await start({ options: { nonrefreshable_access_token_lifetime: 1000 } });
      const { token } = await server.register('alice');
      server.clock.advance(2000);
      for (const stale of [token, 'stale']) {
        const { status } = await server.call('POST', '/login', {
          body: passwordLogin('alice'),
          token: stale,
        });
        assert.equal(status, 200);
      }
    });

    it('responds 403 M_FORBIDDEN to a login with the former password when the password is changed before the session is opened', async () => {
      let change: () => Promise<void> = async () => undefined;
      await start({ extensions: () => ({ checks: { login: () => change() } }) });
      const { userId } = await server.register('alice');
      change = () => server.slice.accounts.setPassword(userId, 'hash of another password', 'all');
      await fails(403, 'M_FORBIDDEN', passwordLogin('alice'));
      assert.deepEqual(await server.slice.devices.list(userId), []);
    });

    it('responds 403 M_USER_DEACTIVATED to a login of any type when the account is deactivated before the session is opened', async () => {
      let change: () => Promise<void> = async () => undefined;
      const type: LoginType = {
        type: 'test.other',
        isOffered: true,
        login: async () => ({ userId: '@alice:test' }),
      };
      await start({ extensions: () => ({ loginTypes: [type], checks: { login: () => change() } }) });
      const { userId } = await server.register('alice');
      change = () => server.slice.accounts.deactivate(userId, { erase: false, byAdmin: false });
      await fails(403, 'M_USER_DEACTIVATED', { type: 'test.other' });
      assert.deepEqual(await server.slice.devices.list(userId), []);
    });

    it('responds 200 to two logins with the right password that replace an imported hash at the same time', async () => {
      await start({ options: { bcrypt_rounds: 5 } });
      await server.register('alice');
      const password_hash = (await hash('password', { cost: 4 })).replace('$2b$', '$2y$');
      await server.database.transaction<AccountTables, unknown>((writer) =>
        writer.updateTable('users').set({ password_hash }).execute(),
      );
      const answers = await Promise.all([login(passwordLogin('alice')), login(passwordLogin('alice'))]);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200],
      );
    });

    it('returns well_known in the response to a login', async () => {
      const wellKnown = { 'm.homeserver': { base_url: 'https://test/' } };
      await start({ extensions: () => ({ wellKnown }) });
      await server.register('alice');
      assert.deepEqual((await login(passwordLogin('alice'))).body['well_known'], wellKnown);
    });

    it('offers no password login with password_config.enabled: only_for_reauth', async () => {
      const password_config = {
        enabled: 'only_for_reauth' as const,
        localdb_enabled: true,
        pepper: null,
        policy: {
          enabled: false,
          minimum_length: 0,
          require_digit: false,
          require_symbol: false,
          require_lowercase: false,
          require_uppercase: false,
        },
      };
      await start({ options: { password_config } });
      assert.deepEqual((await server.call('GET', '/login')).body, { flows: [] });
      await fails(400, 'M_UNKNOWN', passwordLogin('alice'));
    });
  });
});
