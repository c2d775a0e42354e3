import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  AccountsServer,
  type AccountsServerOptions,
  passwordLogin,
  testAccountOptions,
} from '../../../test/support/servers/accounts-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());
  const start = async (setup: AccountsServerOptions = {}) => {
    server = await AccountsServer.start(open, setup);
  };
  const whoami = (token: string) => server.call('GET', '/account/whoami', { token });

  describe('POST /account/password', () => {
    const path = '/account/password';

    it('ends all other sessions of the user whose password is changed', async () => {
      await start();
      const phone = await server.register('alice', { refresh_token: true });
      const laptop = await server.login('alice');
      await whoami(laptop.token);
      const answer = await server.callWithPassword(phone, 'POST', path, { new_password: 'new' });
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

    it('revokes the unused tokens that were issued for the refresh token of the device that changes the password, and keeps the tokens that this device uses', async () => {
      await start();
      const phone = await server.register('alice', { refresh_token: true });
      await whoami(phone.token);
      const refresh = (refresh_token: unknown) =>
        server.call('POST', '/refresh', { body: { refresh_token } });
      const { body: thief } = await refresh(phone.refreshToken);
      const answer = await server.callWithPassword(phone, 'POST', path, { new_password: 'new' });
      assert.equal(answer.status, 200);
      assert.equal((await refresh(thief['refresh_token'])).status, 401);
      assert.equal((await whoami(thief['access_token'] as string)).status, 401);
      assert.equal((await whoami(phone.token)).status, 200);
      assert.equal((await refresh(phone.refreshToken)).status, 200);
    });

    it('keeps the other sessions of the user when the password is changed with logout_devices: false', async () => {
      await start();
      const phone = await server.register('alice');
      const laptop = await server.login('alice');
      await server.callWithPassword(phone, 'POST', path, { new_password: 'new', logout_devices: false });
      assert.equal((await whoami(laptop.token)).status, 200);
    });

    it('accepts interactive authentication only with the password of the same user, and only for the operation that began the session', async () => {
      await start();
      const alice = await server.register('alice');
      await server.register('bob', { password: 'other' });
      const body = { new_password: 'new' };
      const challenge = await server.call('POST', path, { token: alice.token, body });
      const { session } = challenge.body;
      for (const [user, password, status] of [
        ['alice', 'guess', 401],
        ['bob', 'guess', 401],
        ['bob', 'other', 403],
      ] as const) {
        const auth = { ...passwordLogin(user, password), session };
        const answer = await server.call('POST', path, { token: alice.token, body: { ...body, auth } });
        assert.deepEqual([answer.status, answer.body['errcode']], [status, 'M_FORBIDDEN']);
        assert.equal(answer.body['session'], status === 401 ? session : undefined);
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

    it('POST /register refuses passwords that violate the password policy', async () => {
      const policy = {
        enabled: true,
        minimum_length: 8,
        require_digit: true,
        require_symbol: true,
        require_lowercase: true,
        require_uppercase: true,
      };
      const password_config = { ...testAccountOptions.password_config, policy };
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

    it('GET /password_policy returns the requirements for new passwords, and nothing while the policy is off', async () => {
      const rules = { ...testAccountOptions.password_config.policy, minimum_length: 8, require_digit: true };
      for (const enabled of [true, false]) {
        const password_config = { ...testAccountOptions.password_config, policy: { ...rules, enabled } };
        await start({ options: { password_config } });
        const { status, body } = await server.call('GET', '/password_policy');
        assert.equal(status, 200);
        const expected = {
          'm.minimum_length': 8,
          'm.require_digit': true,
          'm.require_symbol': false,
          'm.require_lowercase': false,
          'm.require_uppercase': false,
        };
        assert.deepEqual(body, enabled ? expected : {});
        if (enabled) await server.stop();
      }
    });

    it('responds 403 M_FORBIDDEN with password_config.enabled: only_for_reauth', async () => {
      const password_config = { ...testAccountOptions.password_config, enabled: 'only_for_reauth' as const };
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
});
