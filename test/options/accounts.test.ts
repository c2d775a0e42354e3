import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { registrationMac } from '../../src/accounts/index.ts';
import { eventually } from '../clients/eventually.ts';
import { type ManualClock, manualClock } from '../support/clocks/manual-clock.ts';
import { openContents } from '../support/databases/database-contents.ts';
import { forwardedListener } from '../support/servers/forwarded-listener.ts';
import {
  type ApiAnswer,
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
} from '../support/servers/server.ts';
import { registerAdmin } from '../support/users/register-admin.ts';

const minute = 60_000;

/** Options about accounts, tested on a whole homeserver. */
describe('options of accounts', () => {
  let server: TestServer;
  let clock: ManualClock;
  afterEach(() => server.stop());

  const start = async (accounts: ConfigurationOverrides['accounts'], more: ConfigurationOverrides = {}) => {
    clock = manualClock();
    server = await startTestServer({
      database: 'sqlite',
      clock,
      config: { ...more, accounts: accounts ?? {} },
    });
  };
  const v3 = (path: string) => `/_matrix/client/v3${path}`;
  const signUp = (username: string, more: Record<string, unknown> = {}) =>
    server.api('POST', v3('/register'), {
      body: { username, password: 'correct horse', auth: { type: 'm.login.dummy' }, ...more },
    });
  const login = (user: string, password = 'correct horse', more: Record<string, unknown> = {}) =>
    server.api('POST', v3('/login'), {
      body: { type: 'm.login.password', identifier: { type: 'm.id.user', user }, password, ...more },
    });
  const whoami = (token: unknown) => server.api('GET', v3('/account/whoami'), { token: token as string });
  const codeOf = async (answer: Promise<{ status: number; body: Record<string, unknown> }>) => {
    const { status, body } = await answer;
    return [status, body['errcode']];
  };

  it('answers 403 with the configured message to registrations, and to logins and requests of users who are not administrators, except logouts [option: hs_disabled, hs_disabled_message]', async () => {
    await start({
      hs_disabled: true,
      hs_disabled_message: 'Closed for the holidays',
      admin_contact: 'mailto:admin@example.org',
    });
    const { status, body } = await signUp('alice');
    assert.deepEqual(
      [status, body],
      [
        403,
        {
          errcode: 'M_RESOURCE_LIMIT_EXCEEDED',
          error: 'Closed for the holidays',
          limit_type: 'hs_disabled',
          admin_contact: 'mailto:admin@example.org',
        },
      ],
    );
    const path = '/_synapse/admin/v1/register';
    const refused = [403, 'M_RESOURCE_LIMIT_EXCEEDED'];
    for (const [username, admin, expected] of [
      ['alice', false, refused],
      ['root', true, [200, undefined]],
    ] as const) {
      const { nonce } = (await server.api('GET', path)).body;
      const account = { nonce: String(nonce), username, password: 'correct horse', admin };
      const mac = registrationMac(account, 'shared secret');
      const registered = await server.api('POST', path, { body: { ...account, mac } });
      assert.equal(registered.status, 200);
      const token = String(registered.body['access_token']);
      assert.deepEqual(await codeOf(whoami(token)), expected);
      assert.deepEqual(await codeOf(login(username)), expected);
      assert.equal((await server.api('POST', v3('/logout'), { token })).status, 200);
    }
  });

  it('refuses registration with 403 M_FORBIDDEN when registration is off [option: enable_registration]', async () => {
    await start({ enable_registration: false });
    assert.deepEqual(await codeOf(signUp('alice')), [403, 'M_FORBIDDEN']);
  });

  it('refuses registration without verification when it is not allowed [option: enable_registration_without_verification]', async () => {
    await start({ enable_registration: true, enable_registration_without_verification: false });
    assert.deepEqual(await codeOf(signUp('alice')), [403, 'M_FORBIDDEN']);
  });

  it('registers accounts of known user types by shared secret [option: registration_shared_secret, user_types.extra_user_types]', async () => {
    await start({
      enable_registration: false,
      registration_shared_secret: 'open sesame',
      user_types: { extra_user_types: ['robot'] },
    });
    const path = '/_synapse/admin/v1/register';
    const register = async (user_type: string | undefined, secret = 'open sesame') => {
      const nonce = (await server.api('GET', path)).body['nonce'] as string;
      const request = {
        nonce,
        username: `a${user_type}`,
        password: 'correct horse',
        ...(user_type && { user_type }),
      };
      return server.api('POST', path, { body: { ...request, mac: registrationMac(request, secret) } });
    };
    assert.equal((await register('robot')).status, 200);
    assert.equal((await register(undefined)).status, 200);
    assert.equal((await register('wizard')).status, 400);
    assert.equal((await register('robot', 'guess')).status, 403);
  });

  it('registers guests only when they are allowed [option: allow_guest_access]', async () => {
    await start({ allow_guest_access: true });
    assert.equal(
      (await server.api('POST', v3('/register'), { query: { kind: 'guest' }, body: {} })).status,
      200,
    );
    await server.stop();
    await start({ allow_guest_access: false });
    assert.equal(
      (await server.api('POST', v3('/register'), { query: { kind: 'guest' }, body: {} })).status,
      403,
    );
  });

  it('reports a taken user name as available, and answers M_USER_IN_USE only when the registration would be complete [option: inhibit_user_in_use_error]', async () => {
    await start({ inhibit_user_in_use_error: true });
    await server.register('alice');
    const available = await server.api('GET', v3('/register/available'), { query: { username: 'alice' } });
    assert.deepEqual(available.body, { available: true });
    assert.equal((await server.api('POST', v3('/register'), { body: { username: 'alice' } })).status, 401);
    assert.deepEqual(await codeOf(signUp('alice')), [400, 'M_USER_IN_USE']);
  });

  it('when an administrator acts as a user, records the address for the administrator, and for the user only if the option is on [option: track_puppeted_user_ips]', async () => {
    for (const [tracked, expected] of [
      [false, []],
      [true, ['198.51.100.7']],
    ] as const) {
      await start({ track_puppeted_user_ips: tracked }, { http: forwardedListener });
      const alice = await server.register('alice');
      const root = await registerAdmin(server);
      const path = `/_synapse/admin/v1/users/${alice.userId}/login`;
      const { access_token } = (await server.api('POST', path, { token: root.token, body: {} })).body;
      await server.api('GET', v3('/account/whoami'), {
        token: String(access_token),
        headers: { 'x-forwarded-for': '198.51.100.7' },
      });
      const addressesOf = async (userId: string) => {
        const { body } = await server.api('GET', `/_synapse/admin/v1/whois/${userId}`, { token: root.token });
        return [...new Set(JSON.stringify(body).match(/198\.51\.100\.7/g))];
      };
      clock.advance(minute);
      await eventually(
        'the address of the administrator',
        async () => (await addressesOf('@admin:test')).length > 0,
      );
      assert.deepEqual(await addressesOf(alice.userId), expected);
      if (!tracked) await server.stop();
    }
  });

  it('limits checks of registration tokens by client address [option: rc_registration_token_validity]', async () => {
    await start(
      { registration_requires_token: true, enable_registration_without_verification: false },
      { rateLimits: { rc_registration_token_validity: { per_second: 0.1, burst_count: 2 } } },
    );
    const check = () =>
      server.api('GET', '/_matrix/client/v1/register/m.login.registration_token/validity', {
        query: { token: 'guess' },
      });
    assert.deepEqual([(await check()).body, (await check()).status], [{ valid: false }, 200]);
    assert.deepEqual(await codeOf(check()), [429, 'M_LIMIT_EXCEEDED']);
    clock.advance(10_000);
    assert.equal((await check()).status, 200);
  });

  it('refuses user names that begin with an underscore unless they are allowed [option: allow_underscore_prefixed_registration]', async () => {
    await start({ allow_underscore_prefixed_registration: false });
    assert.deepEqual(await codeOf(signUp('_alice')), [400, 'M_INVALID_USERNAME']);
    await server.stop();
    await start({ allow_underscore_prefixed_registration: true });
    assert.equal((await signUp('_alice')).body['user_id'], '@_alice:test');
  });

  it('hashes passwords with the configured number of bcrypt rounds [option: bcrypt_rounds]', async () => {
    for (const rounds of [4, 7]) {
      await start({ bcrypt_rounds: rounds });
      await server.register('alice');
      const contents = await openContents(server.databaseOptions);
      const [user] = await contents.rows('users');
      await contents.close();
      assert.match(String(user?.['password_hash']), new RegExp(`^\\$2[aby]\\$0${rounds}\\$`));
      assert.equal((await login('alice')).status, 200);
      if (rounds === 4) await server.stop();
    }
  });

  it('expires sessions, access tokens and refresh tokens [option: session_lifetime, refreshable_access_token_lifetime, nonrefreshable_access_token_lifetime, refresh_token_lifetime]', async () => {
    await start({
      session_lifetime: 60 * minute,
      refreshable_access_token_lifetime: 2 * minute,
      nonrefreshable_access_token_lifetime: 30 * minute,
      refresh_token_lifetime: 10 * minute,
    });
    const nonrefreshable = (await signUp('alice')).body;
    assert.equal(nonrefreshable['expires_in_ms'], 30 * minute);
    const refresh = async (token: unknown) =>
      server.api('POST', v3('/refresh'), { body: { refresh_token: token } });
    let session = (await login('alice', undefined, { refresh_token: true })).body;
    assert.equal(session['expires_in_ms'], 2 * minute);
    clock.advance(2 * minute);
    assert.deepEqual(await codeOf(whoami(session['access_token'])), [401, 'M_UNKNOWN_TOKEN']);
    for (let i = 0; i < 6; i++) {
      session = (await refresh(session['refresh_token'])).body;
      clock.advance(9 * minute);
    }
    session = (await refresh(session['refresh_token'])).body;
    assert.equal(session['expires_in_ms'], 2 * minute);
    assert.deepEqual(await codeOf(whoami(nonrefreshable['access_token'])), [401, 'M_UNKNOWN_TOKEN']);
    clock.advance(10 * minute);
    assert.deepEqual(await codeOf(refresh(session['refresh_token'])), [401, 'M_UNKNOWN_TOKEN']);
  });

  it('asks for the password again when the last confirmation has expired [option: ui_auth.session_timeout]', async () => {
    await start({ ui_auth: { session_timeout: 5 * minute } });
    const { token } = await server.register('alice');
    const remove = () => server.api('DELETE', v3('/devices/OTHER'), { token });
    assert.equal((await remove()).status, 200);
    clock.advance(6 * minute);
    assert.equal((await remove()).status, 401);
  });

  it('offers no password login when passwords are off or only confirm actions [option: password_config.enabled, password_config.localdb_enabled]', async () => {
    for (const password_config of [
      { enabled: false },
      { enabled: 'only_for_reauth' as const },
      { localdb_enabled: false },
    ]) {
      await start({ password_config });
      assert.deepEqual((await server.api('GET', v3('/login'))).body, { flows: [] });
      assert.deepEqual(await codeOf(login('alice')), [400, 'M_UNKNOWN']);
      assert.deepEqual(await codeOf(signUp('alice')), [403, 'M_FORBIDDEN']);
      if ('localdb_enabled' in password_config) continue;
      await server.stop();
    }
  });

  it('refuses passwords that violate the policy [option: password_config.policy.enabled, password_config.policy.minimum_length, password_config.policy.require_digit, password_config.policy.require_symbol, password_config.policy.require_lowercase, password_config.policy.require_uppercase]', async () => {
    const rules = {
      minimum_length: 5,
      require_digit: true,
      require_symbol: true,
      require_lowercase: true,
      require_uppercase: true,
    };
    await start({ password_config: { policy: { enabled: true, ...rules } } });
    for (const [password, errcode] of [
      ['aB-1', 'M_PASSWORD_TOO_SHORT'],
      ['aaBB--', 'M_PASSWORD_NO_DIGIT'],
      ['aaBB11', 'M_PASSWORD_NO_SYMBOL'],
      ['BB--11', 'M_PASSWORD_NO_LOWERCASE'],
      ['aa--11', 'M_PASSWORD_NO_UPPERCASE'],
    ] as const)
      assert.deepEqual(await codeOf(signUp('alice', { password })), [400, errcode]);
    assert.equal((await signUp('alice', { password: 'aB-11' })).status, 200);
    for (const policy of [
      { enabled: true, minimum_length: 1 },
      { enabled: false, ...rules },
    ]) {
      await server.stop();
      await start({ password_config: { policy } });
      assert.equal((await signUp('alice', { password: 'a' })).status, 200);
      assert.equal((await signUp('bob', { password: '-' })).status, 200);
    }
  });

  it('limits the rate of registrations [option: rc_registration]', async () => {
    await start({}, { rateLimits: { rc_registration: { per_second: 0.1, burst_count: 2 } } });
    await signUp('a1');
    await signUp('a2');
    assert.deepEqual(await codeOf(signUp('a3')), [429, 'M_LIMIT_EXCEEDED']);
    clock.advance(10_000);
    assert.equal((await signUp('a3')).status, 200);
  });

  /**
   * Sets a tight limit of one kind and lax limits of the other kinds. Expects that the third attempt to log in is
   * refused, and that the next one, after ten seconds, is not.
   */
  async function expectLimit(
    kind: 'address' | 'account' | 'failed_attempts',
    attempt: (i: number) => Promise<ApiAnswer>,
  ) {
    const lax = { per_second: 1000, burst_count: 1000 };
    const limits = {
      address: lax,
      account: lax,
      failed_attempts: lax,
      [kind]: { per_second: 0.1, burst_count: 2 },
    };
    await start({}, { rateLimits: { rc_login: limits } });
    await server.register('alice');
    for (let i = 0; i < 2; i++) assert.notEqual((await attempt(i)).status, 429);
    assert.deepEqual(await codeOf(attempt(2)), [429, 'M_LIMIT_EXCEEDED']);
    clock.advance(10_000);
    assert.notEqual((await attempt(3)).status, 429);
  }

  it('limits the rate of logins by address [option: rc_login.address]', () =>
    expectLimit('address', (i) => login(`user${i}`)));

  it('limits logins and registrations of all addresses of one IPv6 network together', async () => {
    const tight = { per_second: 0.001, burst_count: 2 };
    const lax = { per_second: 1, burst_count: 100 };
    const rc_login = { address: tight, account: lax, failed_attempts: lax };
    const rateLimits = { rc_login, rc_registration: tight };
    await start({}, { rateLimits, http: forwardedListener });
    const postFrom = (address: string, path: string, body: object) =>
      server.api('POST', v3(path), { headers: { 'x-forwarded-for': address }, body });
    const attempts: Record<string, (address: string, i: number) => Promise<ApiAnswer>> = {
      login: (address, i) =>
        postFrom(address, '/login', {
          type: 'm.login.password',
          identifier: { type: 'm.id.user', user: `x${i}` },
          password: 'x',
        }),
      registration: (address, i) =>
        postFrom(address, '/register', {
          username: `y${i}`,
          password: 'correct horse',
          auth: { type: 'm.login.dummy' },
        }),
    };
    for (const [name, attempt] of Object.entries(attempts)) {
      for (let i = 1; i <= 2; i++)
        assert.notEqual((await attempt(`2001:db8:0:1::${i}`, i)).status, 429, name);
      assert.equal((await attempt('2001:db8:0:1:ffff::3', 3)).status, 429, name);
      assert.notEqual((await attempt('::ffff:192.0.2.1', 4)).status, 429, name);
      assert.notEqual((await attempt('2001:db8:0:2::1', 5)).status, 429, name);
    }
  });

  it('limits the rate of logins by account [option: rc_login.account]', () =>
    expectLimit('account', () => login('alice')));

  it('limits the rate of failed logins by account [option: rc_login.failed_attempts]', () =>
    expectLimit('failed_attempts', () => login('alice', 'guess')));
});
