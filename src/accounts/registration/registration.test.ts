import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { AccountsServer, type AccountsServerOptions } from '../../../test/support/servers/accounts-server.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { Stage } from '../interactive-auth/stage.ts';
import type { AccountTables } from '../tables.ts';
import { registrationMac } from './shared-secret.ts';

forEachDatabase((open) => {
  let server: AccountsServer;
  afterEach(() => server.stop());
  const start = async (setup: AccountsServerOptions = {}) => {
    server = await AccountsServer.start(open, setup);
  };
  const register = (body: Record<string, unknown>, query = '') =>
    server.call('POST', `/register${query}`, { body });
  const fails = async (status: number, errcode: string, body: Record<string, unknown>, query = '') => {
    const answer = await register(body, query);
    assert.deepEqual([answer.status, answer.body['errcode']], [status, errcode], JSON.stringify(answer.body));
  };
  const dummy = { type: 'm.login.dummy' };

  describe('registration', () => {
    it('POST /register lists the flows and creates the account when a flow is complete', async () => {
      await start();
      const parameters = { username: 'Alice', password: 'password', device_id: 'PHONE' };
      const asked = await register(parameters);
      assert.equal(asked.status, 401);
      assert.deepEqual(asked.body['flows'], [{ stages: ['m.login.dummy'] }]);
      assert.equal(asked.body['errcode'], undefined);
      const session = asked.body['session'];
      const { status, body } = await register({ ...parameters, auth: { ...dummy, session } });
      assert.equal(status, 200);
      assert.equal(body['user_id'], '@alice:test');
      assert.equal(body['device_id'], 'PHONE');
      assert.equal(body['home_server'], 'test');
      const token = body['access_token'] as string;
      assert.deepEqual((await server.call('GET', '/account/whoami', { token })).body, {
        user_id: '@alice:test',
        device_id: 'PHONE',
        is_guest: false,
      });
    });

    it('POST /register ignores an access token that comes with it', async () => {
      await start();
      const { token } = await server.register('alice');
      for (const [index, sent] of [token, 'stale'].entries()) {
        const body = { username: `bob${index}`, password: 'password', auth: { type: 'm.login.dummy' } };
        assert.equal((await server.call('POST', '/register', { body, token: sent })).status, 200);
      }
    });

    it('POST /register uses the parameters of the first request when later ones omit them', async () => {
      await start();
      const asked = await register({ username: 'alice', password: 'password' });
      const { body } = await register({ auth: { ...dummy, session: asked.body['session'] } });
      assert.equal(body['user_id'], '@alice:test');
      await server.login('alice');
    });

    it('POST /register accepts parameters that are sent after the session began', async () => {
      await start();
      const session = (await register({})).body['session'];
      const { body } = await register({
        username: 'alice',
        password: 'password',
        auth: { ...dummy, session },
      });
      assert.equal(body['user_id'], '@alice:test');
    });

    it('POST /register carries out a session once, and answers repeated requests as the first time', async () => {
      await start();
      const parameters = { password: 'password', inhibit_login: true };
      const auth = { ...dummy, session: (await register(parameters)).body['session'] };
      const { body } = await register({ ...parameters, auth });
      assert.match(body['user_id'] as string, /^@u[0-9a-f]+:test$/);
      assert.deepEqual(Object.keys(body).sort(), ['home_server', 'user_id']);
      assert.deepEqual((await register({ ...parameters, auth })).body, body);
      assert.deepEqual((await register({ auth })).body, body);
      await fails(403, 'M_FORBIDDEN', { ...parameters, password: 'another', auth });
    });

    it('POST /register answers a repeated request with the same tokens, even if the name is taken by then', async () => {
      await start();
      const parameters = { username: 'alice', password: 'password', device_id: 'PHONE' };
      const auth = { ...dummy, session: (await register(parameters)).body['session'] };
      const [first, second] = await Promise.all([
        register({ ...parameters, auth }),
        register({ ...parameters, auth }),
      ]);
      assert.equal(first.status, 200);
      assert.deepEqual([second.status, second.body], [200, first.body]);
      assert.deepEqual((await register({ ...parameters, auth })).body, first.body);
      await fails(400, 'M_USER_IN_USE', parameters);
      server.clock.advance(25 * 3_600_000);
      await fails(400, 'M_USER_IN_USE', { ...parameters, auth });
    });

    it('POST /register refuses taken, invalid and reserved user names, and malformed parameters', async () => {
      const reservations = { isReservedFrom: (userId: string) => userId === '@bridge:test' };
      await start({ extensions: () => ({ reservations }) });
      await server.register('alice');
      await fails(400, 'M_USER_IN_USE', { username: 'alice' });
      await fails(400, 'M_USER_IN_USE', { username: 'ALICE' });
      for (const username of ['', 'a b', 'ålice', '@alice:test', '123', '_bridge', 'x'.repeat(250), 'a\0b']) {
        await fails(400, 'M_INVALID_USERNAME', { username });
      }
      await fails(400, 'M_EXCLUSIVE', { username: 'bridge' });
      await fails(400, 'M_BAD_JSON', { username: 5 });
      await fails(400, 'M_MISSING_PARAM', { username: 'bob', auth: dummy });
      await fails(400, 'M_INVALID_PARAM', { username: 'bob' }, '?kind=wizard');
    });

    it('GET /register/available reports whether a user name is free and valid', async () => {
      await start();
      await server.register('alice');
      const available = (name: string) => server.call('GET', `/register/available?username=${name}`);
      assert.deepEqual((await available('bob')).body, { available: true });
      assert.equal((await available('alice')).body['errcode'], 'M_USER_IN_USE');
      assert.equal((await available('a%20b')).body['errcode'], 'M_INVALID_USERNAME');
      assert.equal((await server.call('GET', '/register/available')).body['errcode'], 'M_MISSING_PARAM');
    });

    it('GET /register/available responds 429 M_LIMIT_EXCEEDED to a client address that tries many names', async () => {
      await start();
      const ask = (name: string) => server.call('GET', `/register/available?username=${name}`);
      const answers = [];
      for (let index = 0; index < 12; index++) answers.push((await ask(`name${index}`)).status);
      assert.deepEqual(answers, [...Array(10).fill(200), 429, 429]);
      server.clock.advance(1_000);
      assert.equal((await ask('later')).status, 200);
    });

    it('POST /register limits attempts with taken user names by client address', async () => {
      await start();
      await server.register('alice');
      for (let index = 0; index < 10; index++) await fails(400, 'M_USER_IN_USE', { username: 'alice' });
      await fails(429, 'M_LIMIT_EXCEEDED', { username: 'alice' });
      await fails(429, 'M_LIMIT_EXCEEDED', { username: 'free' });
    });

    it('POST /register responds 429 M_LIMIT_EXCEEDED to a client address that asks for many challenges', async () => {
      await start();
      const ask = async (body: Record<string, unknown> = {}) => (await register(body)).status;
      for (let index = 0; index < 50; index++) assert.equal(await ask({ auth: null }), 401);
      await fails(429, 'M_LIMIT_EXCEEDED', {});
      await fails(429, 'M_LIMIT_EXCEEDED', { auth: { ...dummy, session: 'unknown' } });
      assert.equal(await ask({ username: 'alice', password: 'password', auth: dummy }), 200);
      server.clock.advance(2_000);
      assert.equal(await ask(), 401);
    });

    it('POST /register stores only known members of a request, and no more than 4 kB', async () => {
      await start();
      const rows = () =>
        server.database.reader<AccountTables>().selectFrom('interactive_sessions').selectAll();
      const request = { username: 'alice', password: 'password', junk: 'x'.repeat(50_000) };
      const { body } = await register(request);
      const [row] = await rows().execute();
      assert.ok(row && row.sealed_body.length < 100);
      const created = await register({ ...request, auth: { ...dummy, session: body['session'] } });
      assert.equal(created.status, 200);
      await fails(413, 'M_TOO_LARGE', { username: 'bob', refresh_token: 'x'.repeat(5_000) });
      const stored = await rows().execute();
      assert.deepEqual(
        stored.map(({ answered }) => answered),
        [1],
      );
      assert.ok(stored[0]!.sealed_body.length < 300);
    });

    it('POST /register stores no session for a request that completes a flow at once', async () => {
      await start();
      const { transactions } = server.database.statistics;
      await server.register('alice');
      assert.equal(server.database.statistics.transactions, transactions + 1);
    });

    it('POST /register stores at most 100 sessions of one client address', async () => {
      await start();
      const first = (await register({})).body['session'];
      for (let index = 0; index < 110; index++) {
        server.clock.advance(2_000);
        await register({});
      }
      const rows = await server.database
        .reader<AccountTables>()
        .selectFrom('interactive_sessions')
        .select('id_hash')
        .execute();
      assert.equal(rows.length, 100);
      const answer = await register({ auth: { ...dummy, session: first } });
      assert.equal(answer.body['error'], 'Unknown authentication session');
    });

    it('POST /register stores at most 10,000 sessions of all client addresses together', async () => {
      await start();
      const row = {
        user_id: null,
        operation: 'POST /register',
        body_digest: '',
        sealed_body: new Uint8Array(),
        completed: '{}',
      };
      const made = server.clock.now();
      await server.database.transaction<AccountTables, void>(async (writer) => {
        for (let start = 0; start < 10_050; start += 1_005) {
          const values = Array.from({ length: 1_005 }, (_, index) => ({
            ...row,
            id_hash: `${start + index}`,
            created_at: made + start + index,
          }));
          await writer.insertInto('interactive_sessions').values(values).execute();
        }
      });
      server.clock.advance(20_000);
      await register({});
      const rows = await server.database
        .reader<AccountTables>()
        .selectFrom('interactive_sessions')
        .select('id_hash')
        .execute();
      assert.equal(rows.length, 10_001);
      assert.ok(
        !rows.some(({ id_hash }) => id_hash === '49') && rows.some(({ id_hash }) => id_hash === '50'),
      );
    });

    it('reports a taken user name only on completion with inhibit_user_in_use_error', async () => {
      await start({ options: { inhibit_user_in_use_error: true } });
      await server.register('alice');
      const available = await server.call('GET', '/register/available?username=alice');
      assert.deepEqual(available.body, { available: true });
      const parameters = { username: 'alice', password: 'password' };
      assert.equal((await register(parameters)).status, 401);
      await fails(400, 'M_USER_IN_USE', { ...parameters, auth: dummy });
    });

    it('responds 403 M_FORBIDDEN when registration is off, or has no verification and that is not allowed', async () => {
      await start({ options: { enable_registration: false } });
      await fails(403, 'M_FORBIDDEN', { username: 'alice' });
      assert.equal((await server.call('GET', '/register/available?username=a')).status, 403);
      await server.stop();
      await start({ options: { enable_registration_without_verification: false } });
      await fails(403, 'M_FORBIDDEN', { username: 'alice', password: 'password', auth: dummy });
    });

    it('requires the configured verification stages', async () => {
      const stage: Stage = {
        type: 'm.login.recaptcha',
        params: () => ({ public_key: 'ask Bob' }),
        verify: ({ response }) => {
          if (response !== 'right') throw new MatrixError(401, 'M_UNAUTHORIZED', 'Wrong response');
          return response;
        },
      };
      await start({
        options: { enable_registration_without_verification: false, enable_registration_captcha: true },
        extensions: () => ({ stages: [stage] }),
      });
      const parameters = { username: 'alice', password: 'password' };
      const asked = await register(parameters);
      assert.deepEqual(asked.body['flows'], [{ stages: ['m.login.recaptcha', 'm.login.dummy'] }]);
      assert.deepEqual(asked.body['params'], { 'm.login.recaptcha': { public_key: 'ask Bob' } });
      const auth = { type: 'm.login.recaptcha', session: asked.body['session'] };
      const failed = await register({ ...parameters, auth: { ...auth, response: 'wrong' } });
      assert.deepEqual([failed.status, failed.body['errcode']], [401, 'M_UNAUTHORIZED']);
      assert.equal(failed.body['session'], asked.body['session']);
      const half = await register({ ...parameters, auth: { ...auth, response: 'right' } });
      assert.deepEqual(half.body['completed'], ['m.login.recaptcha']);
      await fails(403, 'M_FORBIDDEN', { ...parameters, username: 'mallory', auth: { ...auth, ...dummy } });
      assert.equal(
        (await register({ ...parameters, auth: { ...auth, ...dummy } })).body['user_id'],
        '@alice:test',
      );
    });

    it('creates one account when concurrent requests register the same user name', async () => {
      await start();
      const body = { username: 'alice', password: 'password', auth: dummy };
      const answers = await Promise.all([1, 2, 3].map(() => register(body)));
      assert.deepEqual(answers.map((answer) => answer.status).sort(), [200, 400, 400]);
    });

    it('gives new users the default user type [option: user_types.default_user_type]', async () => {
      await start({ options: { user_types: { default_user_type: 'human', extra_user_types: [] } } });
      const { userId } = await server.register('alice');
      assert.equal((await server.slice.accounts.getUser(userId))?.userType, 'human');
    });

    it('limits the rate of registrations by address with 429 M_LIMIT_EXCEEDED', async () => {
      await start({ burst: 2 });
      await server.register('alice');
      await server.register('bob');
      const answer = await register({ username: 'carol' });
      assert.deepEqual([answer.status, answer.body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
    });

    it('refuses request bodies that are too large to store, and malformed auth objects', async () => {
      await start();
      await fails(413, 'M_TOO_LARGE', { username: 'alice', more: 'x'.repeat(70_000) });
      await fails(400, 'M_BAD_JSON', { username: 'alice', auth: 'dummy' });
      await fails(400, 'M_BAD_JSON', { username: 'alice', auth: { ...dummy, session: 5 } });
    });
  });

  describe('guests', () => {
    it('register without credentials, under a numeric name, and may use guest endpoints only', async () => {
      await start();
      const { body } = await register({ device_id: 'MINE', username: 'alice' }, '?kind=guest');
      assert.match(body['user_id'] as string, /^@\d+:test$/);
      assert.notEqual(body['device_id'], 'MINE');
      const token = body['access_token'] as string;
      assert.equal((await server.call('GET', '/account/whoami', { token })).body['is_guest'], true);
      assert.equal((await server.call('GET', '/devices', { token })).status, 200);
      const denied = await server.call('POST', '/account/deactivate', { token, body: {} });
      assert.equal(denied.body['errcode'], 'M_GUEST_ACCESS_FORBIDDEN');
    });

    it('are upgraded to full users of the same name by guest_access_token', async () => {
      await start();
      const guest = (await register({}, '?kind=guest')).body;
      const [other, user] = [(await register({}, '?kind=guest')).body, await server.register('alice')];
      const username = /^@(\d+):/.exec(guest['user_id'] as string)?.[1] ?? '';
      const parameters = { username, password: 'password', device_id: 'PHONE', auth: dummy };
      const token = guest['access_token'] as string;
      await fails(400, 'M_INVALID_USERNAME', parameters);
      for (const wrong of ['unknown', other['access_token'], user.token]) {
        await fails(403, 'M_FORBIDDEN', { ...parameters, guest_access_token: wrong });
      }
      await fails(400, 'M_BAD_JSON', { ...parameters, guest_access_token: 5 });
      const { username: _, ...nameless } = parameters;
      await fails(400, 'M_MISSING_PARAM', { ...nameless, guest_access_token: token });
      const { status, body } = await register({ ...parameters, guest_access_token: token });
      assert.deepEqual([status, body['user_id'], body['device_id']], [200, guest['user_id'], 'PHONE']);
      for (const held of [token, body['access_token'] as string]) {
        const whoami = await server.call('GET', '/account/whoami', { token: held });
        assert.deepEqual([whoami.body['user_id'], whoami.body['is_guest']], [guest['user_id'], false]);
      }
      await server.login(username);
      await fails(403, 'M_FORBIDDEN', { ...parameters, guest_access_token: token });
    });

    it('are refused with 403 M_FORBIDDEN when guest access is off', async () => {
      await start({ options: { allow_guest_access: false } });
      await fails(403, 'M_FORBIDDEN', {}, '?kind=guest');
    });
  });

  describe('registration by shared secret', () => {
    const path = '/_synapse/admin/v1/register';
    const request = async (more: Record<string, unknown> = {}, secret = 'shared secret') => {
      const { nonce } = (await server.call('GET', path)).body as { nonce: string };
      const account = { nonce, username: 'admin', password: 'password', admin: true, ...more };
      return { ...account, mac: registrationMac(account, secret) };
    };
    const send = (body: unknown) => server.call('POST', path, { body });

    it('creates users and administrators when registration is off', async () => {
      await start({ options: { enable_registration: false } });
      const { status, body } = await send(await request());
      assert.equal(status, 200, JSON.stringify(body));
      assert.deepEqual(Object.keys(body).sort(), ['access_token', 'device_id', 'home_server', 'user_id']);
      assert.equal(await server.slice.accounts.isAdmin('@admin:test'), true);
      await send(await request({ username: 'bot', admin: false, user_type: 'bot' }));
      const bot = await server.slice.accounts.getUser('@bot:test');
      assert.deepEqual([bot?.isAdmin, bot?.userType], [false, 'bot']);
    });

    it('computes the MAC as other programs do', () => {
      const request = { nonce: 'thisisanonce', username: 'pepper_roni', password: 'pizza', admin: true };
      // printf 'thisisanonce\0pepper_roni\0pizza\0admin' | openssl sha1 -hmac shared_secret
      assert.equal(registrationMac(request, 'shared_secret'), '48715842ad67d5dc9a9ee938a3bda4fcfae8d7c7');
    });

    it('refuses wrong MACs, used, expired and unknown nonces, and unknown user types', async () => {
      await start();
      assert.equal((await send(await request({}, 'guess'))).status, 403);
      assert.equal((await send({ ...(await request()), mac: '' })).status, 403);
      assert.equal((await send({ ...(await request()), admin: false })).status, 403);
      const used = await request();
      await send(used);
      assert.deepEqual((await send(used)).body['error'], 'Unknown nonce');
      const old = await request({ username: 'late' });
      server.clock.advance(61_000);
      assert.deepEqual((await send(old)).body['error'], 'Unknown nonce');
      assert.equal((await send(await request({ username: 'other', user_type: 'wizard' }))).status, 400);
    });

    it('accepts a nonce after many other nonces were requested', async () => {
      await start();
      const early = await request();
      for (let index = 0; index < 1_100; index++) server.slice.sharedSecretRegistration.nonce();
      assert.equal((await send(early)).status, 200);
    });

    it('refuses nonces that are altered or were issued before a restart', async () => {
      await start();
      const { nonce } = (await server.call('GET', path)).body as { nonce: string };
      const [random, expiry, mac] = nonce.split('.');
      for (const altered of [`${random}.${Number(expiry) + 60_000}.${mac}`, `x${nonce}`, `${nonce}A`, '']) {
        const account = { nonce: altered, username: 'admin', password: 'password' };
        const answer = await send({ ...account, mac: registrationMac(account, 'shared secret') });
        assert.deepEqual([answer.status, answer.body['error']], [400, 'Unknown nonce'], altered);
      }
      await server.stop();
      await start();
      const account = { nonce, username: 'admin', password: 'password' };
      const answer = await send({ ...account, mac: registrationMac(account, 'shared secret') });
      assert.equal(answer.body['error'], 'Unknown nonce');
    });

    it('responds 400 without a configured secret', async () => {
      await start({ options: { registration_shared_secret: null } });
      assert.equal((await server.call('GET', path)).status, 400);
    });
  });
});
