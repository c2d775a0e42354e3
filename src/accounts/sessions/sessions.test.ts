import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  AccountsServer,
  type AccountsServerOptions,
  minute,
} from '../../../test/support/servers/accounts-server.ts';
import type { AccountTables } from '../tables.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());
  const start = async (setup: AccountsServerOptions = {}) => {
    server = await AccountsServer.start(open, setup);
  };
  const whoami = (token: string | undefined) => server.call('GET', '/account/whoami', { token });
  const refresh = (refresh_token: string | undefined) =>
    server.call('POST', '/refresh', { body: { refresh_token } });
  const databaseStatistics = () => ({ ...server.database.statistics });

  describe('access tokens', () => {
    it('authenticates a cached access token without a query', async () => {
      await start();
      const { token } = await server.register('alice');
      await whoami(token);
      const before = databaseStatistics();
      for (let i = 0; i < 20; i++) assert.equal((await whoami(token)).status, 200);
      assert.deepEqual(databaseStatistics(), before);
    });

    it('stores only hashes of access tokens and refresh tokens', async () => {
      await start();
      const alice = await server.register('alice', { refresh_token: true });
      const reader = server.database.reader<AccountTables>();
      const rows = JSON.stringify([
        await reader.selectFrom('access_tokens').selectAll().execute(),
        await reader.selectFrom('refresh_tokens').selectAll().execute(),
      ]);
      assert.ok(!rows.includes(alice.token) && !rows.includes(alice.refreshToken!));
    });

    it('rejects unknown and overlong access tokens with M_UNKNOWN_TOKEN, and requests without one with M_MISSING_TOKEN', async () => {
      await start();
      const unknown = await whoami('hat_unknown');
      assert.deepEqual([unknown.status, unknown.body['errcode']], [401, 'M_UNKNOWN_TOKEN']);
      assert.equal(unknown.body['soft_logout'], false);
      assert.equal((await whoami('x'.repeat(5000))).body['errcode'], 'M_UNKNOWN_TOKEN');
      assert.equal((await whoami(undefined)).body['errcode'], 'M_MISSING_TOKEN');
    });

    it('rejects expired access tokens with soft_logout: true, whether they are cached or not', async () => {
      await start({ options: { nonrefreshable_access_token_lifetime: 10 * minute } });
      const { token } = await server.register('alice');
      const { token: unused } = await server.login('alice');
      assert.equal((await whoami(token)).status, 200);
      server.clock.advance(10 * minute);
      for (const expired of [token, unused]) {
        const { status, body } = await whoami(expired);
        assert.deepEqual([status, body['errcode'], body['soft_logout']], [401, 'M_UNKNOWN_TOKEN', true]);
      }
    });

    it('POST /logout accepts an expired access token and deletes its device; POST /logout/all accepts it and deletes all devices', async () => {
      await start();
      const { token } = await server.register('alice');
      const session = await server.login('alice', { refresh_token: true });
      const other = await server.login('alice', { refresh_token: true });
      server.clock.advance(5 * minute);
      assert.equal((await server.call('POST', '/logout', { token: session.token })).status, 200);
      assert.equal((await refresh(session.refreshToken)).body['errcode'], 'M_UNKNOWN_TOKEN');
      assert.equal((await whoami(session.token)).body['soft_logout'], false);
      assert.equal((await whoami(token)).status, 200);
      assert.equal((await server.call('POST', '/logout/all', { token: other.token })).status, 200);
      assert.equal((await whoami(token)).status, 401);
    });

    it('ends access tokens with the session, however often they are refreshed', async () => {
      await start({ options: { session_lifetime: 60 * minute } });
      const { body } = await server.call('POST', '/register', {
        body: { username: 'a', password: 'password', refresh_token: true, auth: { type: 'm.login.dummy' } },
      });
      assert.equal(body['expires_in_ms'], 5 * minute);
      server.clock.advance(58 * minute);
      const refreshed = await refresh(body['refresh_token'] as string);
      assert.equal(refreshed.body['expires_in_ms'], 2 * minute);
      server.clock.advance(2 * minute);
      const ended = await refresh(refreshed.body['refresh_token'] as string);
      assert.deepEqual([ended.status, ended.body['soft_logout']], [401, true]);
    });
  });

  describe('refresh tokens', () => {
    it('issues refresh tokens on request, and exchanges them for new tokens', async () => {
      await start();
      const { refreshToken: none } = await server.register('alice');
      assert.equal(none, undefined);
      const session = await server.login('alice', { refresh_token: true });
      server.clock.advance(5 * minute);
      assert.equal((await whoami(session.token)).body['soft_logout'], true);
      const { status, body } = await refresh(session.refreshToken);
      assert.deepEqual([status, body['expires_in_ms']], [200, 5 * minute]);
      assert.equal((await whoami(body['access_token'] as string)).body['device_id'], session.deviceId);
      assert.notEqual(body['refresh_token'], session.refreshToken);
    });

    it('exchanges a refresh token again until one of the new tokens is used', async () => {
      await start();
      const session = await server.register('alice', { refresh_token: true });
      await whoami(session.token);
      const lostAnswer = await refresh(session.refreshToken);
      assert.equal(lostAnswer.status, 200);
      const repeated = await refresh(session.refreshToken);
      assert.equal(repeated.status, 200);
      assert.equal((await whoami(session.token)).status, 200);
      assert.equal((await whoami(repeated.body['access_token'] as string)).status, 200);
      const used = await refresh(session.refreshToken);
      assert.deepEqual([used.status, used.body['errcode']], [401, 'M_UNKNOWN_TOKEN']);
      assert.equal((await whoami(session.token)).status, 401);
    });

    it('revokes the other pairs of tokens that were issued for the same refresh token when a token of one pair is used', async () => {
      for (const use of ['access token', 'refresh token'] as const) {
        await start();
        const session = await server.register('alice', { refresh_token: true });
        const pairs = [];
        for (let index = 0; index < 3; index++) pairs.push((await refresh(session.refreshToken)).body);
        const [first, second, third] = pairs as Record<'access_token' | 'refresh_token', string>[];
        const used =
          use === 'access token' ? await whoami(second!.access_token) : await refresh(second!.refresh_token);
        assert.equal(used.status, 200);
        for (const sibling of [first!, third!]) {
          assert.equal((await whoami(sibling.access_token)).status, 401, use);
          assert.equal((await refresh(sibling.refresh_token)).status, 401, use);
        }
        assert.equal((await refresh(session.refreshToken)).status, 401, use);
        assert.equal((await refresh(second!.refresh_token)).status, 200, use);
        if (use === 'access token') await server.stop();
      }
    });

    it('revokes one of two pairs of tokens that are first used at the same time', async () => {
      await start();
      const session = await server.register('alice', { refresh_token: true });
      const pairs = [await refresh(session.refreshToken), await refresh(session.refreshToken)];
      const used = await Promise.all(pairs.map(({ body }) => whoami(body['access_token'] as string)));
      assert.deepEqual(used.map(({ status }) => status).sort(), [200, 401]);
      const refreshed = await Promise.all(pairs.map(({ body }) => refresh(body['refresh_token'] as string)));
      assert.deepEqual(
        refreshed.map(({ status }) => status),
        used.map(({ status }) => status),
      );
    });

    it('stores at most five unused pairs of tokens for a refresh token', async () => {
      await start();
      const session = await server.register('alice', { refresh_token: true });
      let latest = await refresh(session.refreshToken);
      for (let index = 0; index < 12; index++) {
        server.clock.advance(1);
        latest = await refresh(session.refreshToken);
      }
      const reader = server.database.reader<AccountTables>();
      for (const table of ['access_tokens', 'refresh_tokens'] as const) {
        assert.equal((await reader.selectFrom(table).selectAll().execute()).length, 6, table);
      }
      assert.equal((await whoami(latest.body['access_token'] as string)).status, 200);
      for (const table of ['access_tokens', 'refresh_tokens'] as const) {
        assert.equal((await reader.selectFrom(table).selectAll().execute()).length, 1, table);
      }
    });

    it('rejects too many exchanges of refresh tokens by one device or one address with 429 M_LIMIT_EXCEEDED', async () => {
      await start();
      const [alice, bob] = [
        await server.register('alice', { refresh_token: true }),
        await server.register('bob', { refresh_token: true }),
      ];
      const statuses = async (count: number, exchange: () => ReturnType<typeof refresh>) => {
        const found = [];
        for (let index = 0; index < count; index++) found.push((await exchange()).status);
        return found;
      };
      const expected = (status: number) => [...Array(20).fill(status), 429];
      assert.deepEqual(await statuses(21, () => refresh(alice.refreshToken)), expected(200));
      assert.equal((await refresh(bob.refreshToken)).status, 200);
      assert.deepEqual(await statuses(21, () => refresh('hrt_guess')), expected(401));
      server.clock.advance(10_000);
      assert.equal((await refresh(alice.refreshToken)).status, 200);
    });

    it('revokes a refresh token when the next one is exchanged', async () => {
      await start();
      const session = await server.register('alice', { refresh_token: true });
      const second = await refresh(session.refreshToken);
      const third = await refresh(second.body['refresh_token'] as string);
      assert.equal(third.status, 200);
      assert.equal((await refresh(session.refreshToken)).status, 401);
    });

    it('rejects expired refresh tokens with soft_logout: true, and refresh tokens that are unknown or of an ended session', async () => {
      await start({ options: { refresh_token_lifetime: 60 * minute } });
      const session = await server.register('alice', { refresh_token: true });
      assert.equal((await refresh('hrt_unknown')).body['soft_logout'], false);
      assert.equal((await refresh(undefined)).body['errcode'], 'M_BAD_JSON');
      await server.call('POST', '/logout', { token: session.token });
      assert.equal((await refresh(session.refreshToken)).status, 401);
      const other = await server.login('alice', { refresh_token: true });
      server.clock.advance(60 * minute);
      assert.equal((await refresh(other.refreshToken)).body['soft_logout'], true);
    });
  });

  describe('logout', () => {
    it('ends the session and deletes its device at POST /logout', async () => {
      await start();
      const phone = await server.register('alice');
      const laptop = await server.login('alice');
      await whoami(phone.token);
      assert.deepEqual((await server.call('POST', '/logout', { token: phone.token })).body, {});
      assert.equal((await whoami(phone.token)).body['errcode'], 'M_UNKNOWN_TOKEN');
      const { body } = await server.call('GET', '/devices', { token: laptop.token });
      const lastSeen = { last_seen_ip: '127.0.0.1', last_seen_ts: server.clock.now() };
      assert.deepEqual(body, {
        devices: [{ device_id: laptop.deviceId, display_name: null, ...lastSeen }],
      });
    });

    it('ends all sessions of the user, and of no other user, at POST /logout/all', async () => {
      await start();
      const sessions = [await server.register('alice'), await server.login('alice')];
      const bob = await server.register('bob');
      for (const { token } of sessions) await whoami(token);
      assert.deepEqual((await server.call('POST', '/logout/all', { token: sessions[0]!.token })).body, {});
      for (const { token } of sessions) assert.equal((await whoami(token)).status, 401);
      assert.equal((await whoami(bob.token)).status, 200);
    });

    it('allows a locked user to log out, and rejects other requests with M_USER_LOCKED', async () => {
      await start();
      const { token, userId } = await server.register('alice', { refresh_token: true });
      await whoami(token);
      await server.slice.accounts.setLocked(userId, true);
      const { status, body } = await whoami(token);
      assert.deepEqual([status, body['errcode'], body['soft_logout']], [401, 'M_USER_LOCKED', true]);
      await server.slice.accounts.setLocked(userId, false);
      const { refreshToken } = await server.login('alice', { refresh_token: true });
      await server.slice.accounts.setLocked(userId, true);
      assert.equal((await refresh(refreshToken)).body['errcode'], 'M_USER_LOCKED');
      assert.equal((await server.call('POST', '/logout', { token })).status, 200);
    });
  });

  describe('sessions', () => {
    it('applies a suspension of the user to the next request of a cached session', async () => {
      await start();
      const { token, userId } = await server.register('alice');
      const authenticate = () =>
        server.slice.authenticator.authenticate(token, {
          assertedUserId: undefined,
          assertedDeviceId: undefined,
          ip: '::1',
          userAgent: undefined,
        });
      assert.equal((await authenticate()).isSuspended, false);
      await server.slice.accounts.setSuspended(userId, true);
      assert.equal((await authenticate()).isSuspended, true);
    });

    it('deletes tokens from the database a month after they expire', async () => {
      await start({ options: { nonrefreshable_access_token_lifetime: minute } });
      await server.register('alice');
      server.clock.advance(31 * 24 * 60 * minute);
      await server.slice.housekeeping.run();
      const remaining = await server.database
        .reader<AccountTables>()
        .selectFrom('access_tokens')
        .selectAll()
        .execute();
      assert.deepEqual(remaining, []);
    });
  });
});
