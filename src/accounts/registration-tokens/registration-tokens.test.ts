import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { AccountsServer, type AccountsServerOptions } from '../../../test/support/servers/accounts-server.ts';

const hour = 3_600_000;

forSelectedDatabases(import.meta.url, (open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());
  const start = async (setup: AccountsServerOptions = {}) => {
    const options = { registration_requires_token: true, enable_registration_without_verification: false };
    server = await AccountsServer.start(open, { ...setup, options: { ...options, ...setup.options } });
    return server.slice.registrationTokens;
  };
  const register = (body: Record<string, unknown>) => server.call('POST', '/register', { body });
  const tokenAuth = (token: string, session?: unknown) => ({
    type: 'm.login.registration_token',
    token,
    ...(session !== undefined && { session }),
  });
  /** Completes the stage of the token, but not the registration. @returns the response */
  const begin = (token: string, username: string) =>
    register({ username, password: 'password', auth: tokenAuth(token) });
  const finish = (session: unknown) => register({ auth: { type: 'm.login.dummy', session } });
  const isValid = async (token: string) => {
    const path = '/_matrix/client/v1/register/m.login.registration_token/validity';
    return (await server.call('GET', `${path}?token=${encodeURIComponent(token)}`)).body['valid'];
  };

  describe('registration tokens', () => {
    it('requires a valid registration token in every flow of a registration [option: registration_requires_token]', async () => {
      const tokens = await start();
      await tokens.create({ token: 'welcome' });
      const challenge = await register({ username: 'alice', password: 'password' });
      assert.deepEqual(challenge.body['flows'], [
        { stages: ['m.login.registration_token', 'm.login.dummy'] },
      ]);
      const { session } = challenge.body;
      const withoutToken = await finish(session);
      assert.deepEqual([withoutToken.status, withoutToken.body['completed']], [401, ['m.login.dummy']]);
      for (const [auth, errcode] of [
        [tokenAuth('guess', session), 'M_UNAUTHORIZED'],
        [tokenAuth('a\0b', session), 'M_UNAUTHORIZED'],
        [tokenAuth('', session), 'M_UNAUTHORIZED'],
        [{ type: 'm.login.registration_token', session }, 'M_MISSING_PARAM'],
        [{ type: 'm.login.registration_token', session, token: 5 }, 'M_BAD_JSON'],
      ] as const) {
        const failed = await register({ auth });
        assert.deepEqual([failed.status, failed.body['errcode']], [401, errcode]);
        assert.deepEqual(failed.body['completed'], ['m.login.dummy']);
      }
      const { status, body } = await register({ auth: tokenAuth('welcome', session) });
      assert.deepEqual([status, body['user_id']], [200, '@alice:test']);
      await server.login('alice');
    });

    it('counts pending and completed registrations of a token, and counts a repeated request once', async () => {
      const tokens = await start();
      await tokens.create({ token: 'welcome', uses_allowed: 2 });
      const { session } = (await begin('welcome', 'alice')).body;
      await register({ auth: tokenAuth('welcome', session) });
      const counts = async () => {
        const found = await tokens.find('welcome');
        return [found?.pending, found?.completed];
      };
      assert.deepEqual(await counts(), [1, 0]);
      assert.equal((await finish(session)).status, 200);
      assert.deepEqual(await counts(), [0, 1]);
      assert.equal((await finish(session)).status, 200);
      assert.deepEqual(await counts(), [0, 1]);
    });

    it('releases the reserved use of a token when the session fails, expires or takes another token', async () => {
      const tokens = await start();
      await tokens.create({ token: 'once', uses_allowed: 1 });
      await tokens.create({ token: 'other' });
      await tokens.create({ token: 'first' });
      const firstSession = await begin('first', 'alice');
      const secondSession = await begin('once', 'alice');
      assert.equal((await finish(firstSession.body['session'])).status, 200);
      assert.equal((await finish(secondSession.body['session'])).body['errcode'], 'M_USER_IN_USE');
      assert.equal(await isValid('once'), true);

      const { session } = (await begin('once', 'bob')).body;
      assert.equal(await isValid('once'), false);
      assert.equal((await begin('once', 'carol')).body['errcode'], 'M_UNAUTHORIZED');
      await register({ auth: tokenAuth('other', session) });
      assert.equal(await isValid('once'), true);

      await begin('once', 'dora');
      assert.equal(await isValid('once'), false);
      server.clock.advance(25 * hour);
      assert.equal(await isValid('once'), true);
      assert.equal((await begin('once', 'emil')).status, 401);
    });

    it('registers no more accounts than a token allows, however many requests come at once', async () => {
      const tokens = await start();
      await tokens.create({ token: 'three', uses_allowed: 3 });
      const begun = await Promise.all(Array.from({ length: 12 }, (_, index) => begin('three', `u${index}x`)));
      const reserved = begun.filter(({ body }) => body['errcode'] === undefined);
      assert.equal(reserved.length, 3);
      const finished = await Promise.all(begun.map(({ body }) => finish(body['session'])));
      assert.equal(finished.filter(({ status }) => status === 200).length, 3);
      const { pending, completed } = (await tokens.find('three'))!;
      assert.deepEqual([pending, completed], [0, 3]);
    });

    it('refuses a registration token after its expiry, except in a registration that used the token before its expiry', async () => {
      const tokens = await start();
      await tokens.create({ token: 'today', expiry_time: server.clock.now() + hour });
      const { session } = (await begin('today', 'alice')).body;
      assert.equal(await isValid('today'), true);
      server.clock.advance(hour);
      assert.equal(await isValid('today'), false);
      assert.equal((await begin('today', 'bob')).body['errcode'], 'M_UNAUTHORIZED');
      assert.equal((await finish(session)).status, 200);
    });

    it('rejects the completion of a registration when an administrator has deleted its token or lowered the limit of the token after the registration began', async () => {
      const tokens = await start();
      await tokens.create({ token: 'deleted' });
      await tokens.create({ token: 'limited' });
      const sessions = [(await begin('deleted', 'alice')).body, (await begin('limited', 'bob')).body];
      await tokens.remove('deleted');
      await tokens.update('limited', { uses_allowed: 0 });
      for (const { session } of sessions) {
        const { status, body } = await finish(session);
        assert.deepEqual([status, body['errcode']], [401, 'M_UNAUTHORIZED']);
      }
      assert.equal((await server.slice.accounts.getUser('@alice:test'))?.userId, undefined);
    });

    it('counts the upgrade of a guest as a completed use of the token', async () => {
      const tokens = await start();
      await tokens.create({ token: 'welcome' });
      const guest = (await server.call('POST', '/register?kind=guest', { body: {} })).body;
      const parameters = {
        username: String(guest['user_id']).slice(1, -':test'.length),
        password: 'password',
        guest_access_token: guest['access_token'],
      };
      const { session } = (await register({ ...parameters, auth: tokenAuth('welcome') })).body;
      assert.equal((await finish(session)).body['user_id'], guest['user_id']);
      assert.equal((await tokens.find('welcome'))?.completed, 1);
    });
  });

  describe('RegistrationTokens', () => {
    it('creates, lists, updates and removes registration tokens', async () => {
      const tokens = await start();
      const expiry_time = server.clock.now() + hour;
      const none = { pending: 0, completed: 0 };
      const createdToken = await tokens.create({ token: 'a.B_c~d-1', uses_allowed: 5, expiry_time });
      assert.deepEqual(createdToken, { token: 'a.B_c~d-1', uses_allowed: 5, expiry_time, ...none });
      const generated = await tokens.create({});
      assert.match(generated.token, /^[A-Za-z0-9._~-]{16}$/);
      assert.equal((await tokens.create({ length: 64 })).token.length, 64);
      const unused = await tokens.create({ token: 'unused', uses_allowed: 0 });
      assert.deepEqual(await tokens.list(false), [unused]);
      assert.equal((await tokens.list(true)).length, 3);
      assert.equal((await tokens.list()).length, 4);

      const changed = await tokens.update('unused', { uses_allowed: null });
      assert.deepEqual(changed, { ...unused, uses_allowed: null });
      assert.deepEqual(await tokens.update('a.B_c~d-1', {}), createdToken);
      const forever = await tokens.update('a.B_c~d-1', { expiry_time: null });
      assert.deepEqual(forever, { ...createdToken, expiry_time: null });
      await tokens.remove('unused');
      assert.equal(await tokens.find('unused'), undefined);
    });

    it('refuses malformed and existing tokens and invalid limits with M_INVALID_PARAM, and unknown tokens with M_NOT_FOUND', async () => {
      const tokens = await start();
      await tokens.create({ token: 'welcome' });
      for (const token of [
        { token: 'welcome' },
        { token: '' },
        { token: 'a b' },
        { token: 'x'.repeat(65) },
        { length: 0 },
        { length: 65 },
        { length: 1.5 },
        { uses_allowed: -1 },
        { uses_allowed: 1.5 },
        { uses_allowed: 2 ** 31 },
        { expiry_time: server.clock.now() - 1 },
        { expiry_time: 1.5 },
      ]) {
        await assert.rejects(tokens.create(token), { errcode: 'M_INVALID_PARAM' }, JSON.stringify(token));
      }
      await assert.rejects(tokens.update('welcome', { uses_allowed: -1 }), { errcode: 'M_INVALID_PARAM' });
      await assert.rejects(tokens.update('none', { uses_allowed: 1 }), { errcode: 'M_NOT_FOUND' });
      await assert.rejects(tokens.remove('none'), { errcode: 'M_NOT_FOUND' });
    });
  });

  describe('GET /register/m.login.registration_token/validity', () => {
    it('responds 403 M_FORBIDDEN when registration is off, and 400 M_MISSING_PARAM without a token', async () => {
      await start();
      const path = '/_matrix/client/v1/register/m.login.registration_token/validity';
      assert.equal((await server.call('GET', path)).body['errcode'], 'M_MISSING_PARAM');
      assert.equal(await isValid('guess'), false);
      await server.stop();
      await start({ options: { enable_registration: false } });
      assert.equal((await server.call('GET', `${path}?token=a`)).body['errcode'], 'M_FORBIDDEN');
    });

    it('responds 429 M_LIMIT_EXCEEDED to a client address that tries many tokens at this endpoint and in registrations', async () => {
      await start({ burst: 3 });
      for (const token of ['a', 'b', 'c']) assert.equal(await isValid(token), false);
      assert.equal(await isValid('d'), undefined);
      const { status, body } = await begin('e', 'alice');
      assert.deepEqual([status, body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
    });
  });
});
