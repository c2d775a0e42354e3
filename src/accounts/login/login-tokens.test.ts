import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  AccountsServer,
  type AccountsServerOptions,
  type LoggedInUser,
  minute,
} from '../../../test/support/servers/accounts-server.ts';
import { OwnedRows } from '../../kernel/slices/index.ts';
import { accountsManifest } from '../manifest.ts';

const path = '/_matrix/client/v1/login/get_token';

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  let alice: LoggedInUser;
  afterEach(() => server.stop());
  const start = async (
    login_via_existing_session: Partial<{
      enabled: boolean;
      require_ui_auth: boolean;
      token_timeout: number;
    }> = {},
    setup: AccountsServerOptions = {},
  ) => {
    const option = { enabled: true, require_ui_auth: true, token_timeout: 2 * minute };
    const options = {
      login_via_existing_session: { ...option, ...login_via_existing_session },
      ...setup.options,
    };
    server = await AccountsServer.start(open, { ...setup, options });
    alice = await server.register('alice');
  };
  const redeem = (token: unknown) =>
    server.call('POST', '/login', { body: { type: 'm.login.token', token } });
  const issue = async () => {
    const { status, body } = await server.callWithPassword(alice, 'POST', path);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };

  describe('POST /login/get_token', () => {
    it('issues tokens that log no client in after the password is changed or all sessions are ended', async () => {
      await start({}, { extensions: () => ({ lifecycleHooks: [new OwnedRows([accountsManifest])] }) });
      const { login_token: beforeChange } = await issue();
      const change = { new_password: 'password' };
      const { status } = await server.callWithPassword(alice, 'POST', '/account/password', change);
      assert.equal(status, 200);
      const { login_token: beforeLogout } = await issue();
      assert.equal((await server.call('POST', '/logout/all', { token: alice.token })).status, 200);
      for (const token of [beforeChange, beforeLogout]) {
        const answer = await redeem(token);
        assert.deepEqual([answer.status, answer.body['errcode']], [403, 'M_FORBIDDEN']);
      }
    });

    it('issues a login token that logs in one other client, and no login token when the option is disabled [option: login_via_existing_session.enabled]', async () => {
      await start();
      const { body: flows } = await server.call('GET', '/login');
      assert.deepEqual(flows['flows'], [
        { type: 'm.login.password' },
        { type: 'm.login.token', get_login_token: true },
      ]);
      const { login_token, expires_in_ms } = await issue();
      assert.equal(expires_in_ms, 2 * minute);
      const { status, body } = await redeem(login_token);
      assert.deepEqual([status, body['user_id']], [200, alice.userId]);
      assert.notEqual(body['device_id'], alice.deviceId);
      const secondUse = await redeem(login_token);
      assert.deepEqual([secondUse.status, secondUse.body['errcode']], [403, 'M_FORBIDDEN']);
      await server.stop();

      await start({ enabled: false });
      const disabled = await server.call('POST', path, { token: alice.token, body: {} });
      assert.deepEqual([disabled.status, disabled.body['errcode']], [404, 'M_UNRECOGNIZED']);
      assert.deepEqual((await server.call('GET', '/login')).body['flows'], [{ type: 'm.login.password' }]);
      assert.equal((await redeem('hlt_x')).body['errcode'], 'M_UNKNOWN');
    });

    it('requires the password for each login token, even soon after another interactive authentication, unless require_ui_auth is off [option: login_via_existing_session.require_ui_auth]', async () => {
      await start({}, { options: { ui_auth: { session_timeout: 10 * minute } } });
      await issue();
      await issue();
      await server.stop();
      await start({ require_ui_auth: false });
      const { status, body } = await server.call('POST', path, { token: alice.token, body: {} });
      assert.equal(status, 200);
      assert.equal((await redeem(body['login_token'])).status, 200);
    });

    it('issues login tokens that expire [option: login_via_existing_session.token_timeout]', async () => {
      await start({ token_timeout: minute });
      const { login_token } = await issue();
      server.clock.advance(minute);
      assert.equal((await redeem(login_token)).body['errcode'], 'M_FORBIDDEN');
      const second = (await issue())['login_token'];
      server.clock.advance(minute - 1);
      assert.equal((await redeem(second)).status, 200);
    });

    it('redeems a login token in only one of several parallel logins', async () => {
      await start();
      const { login_token } = await issue();
      const answers = await Promise.all([1, 2, 3, 4].map(() => redeem(login_token)));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 403, 403, 403]);
    });

    it('rejects login tokens of a locked or deactivated account', async () => {
      await start();
      const [first, second] = [(await issue())['login_token'], (await issue())['login_token']];
      await server.slice.accounts.setLocked(alice.userId, true);
      const locked = await redeem(first);
      assert.deepEqual([locked.status, locked.body['errcode']], [401, 'M_USER_LOCKED']);
      await server.slice.accounts.setLocked(alice.userId, false);
      await server.slice.accounts.deactivate(alice.userId, { erase: true, byAdmin: false });
      const deactivated = await redeem(second);
      assert.deepEqual([deactivated.status, deactivated.body['errcode']], [403, 'M_USER_DEACTIVATED']);
    });

    it('rejects malformed and unknown login tokens, and the requests of a user for login tokens above the rate limit', async () => {
      await start({ require_ui_auth: false }, { burst: 3 });
      for (const [token, errcode] of [
        [undefined, 'M_MISSING_PARAM'],
        [5, 'M_MISSING_PARAM'],
        ['x'.repeat(300), 'M_FORBIDDEN'],
      ]) {
        assert.equal((await redeem(token)).body['errcode'], errcode);
      }
      const { token } = alice;
      for (let times = 0; times < 3; times++) {
        assert.equal((await server.call('POST', path, { token, body: {} })).status, 200);
      }
      const { status, body } = await server.call('POST', path, { token, body: {} });
      assert.deepEqual([status, body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
    });
  });
});
