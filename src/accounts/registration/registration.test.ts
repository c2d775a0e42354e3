import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { Stage } from '../interactive-auth/stage.ts';
import { dummy, RegistrationServer } from './test/registration-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  const server = new RegistrationServer(open);

  describe('registration', () => {
    it('POST /register lists the flows and creates the account when a flow is complete', async () => {
      await server.start();
      const parameters = { username: 'Alice', password: 'password', device_id: 'PHONE' };
      const challenge = await server.register(parameters);
      assert.equal(challenge.status, 401);
      assert.deepEqual(challenge.body['flows'], [{ stages: ['m.login.dummy'] }]);
      assert.equal(challenge.body['errcode'], undefined);
      const session = challenge.body['session'];
      const { status, body } = await server.register({ ...parameters, auth: { ...dummy, session } });
      assert.equal(status, 200);
      assert.equal(body['user_id'], '@alice:test');
      assert.equal(body['device_id'], 'PHONE');
      assert.equal(body['home_server'], 'test');
      const token = body['access_token'] as string;
      assert.deepEqual((await server.accounts.call('GET', '/account/whoami', { token })).body, {
        user_id: '@alice:test',
        device_id: 'PHONE',
        is_guest: false,
      });
    });

    it('POST /register ignores an access token in the request', async () => {
      await server.start();
      const { token } = await server.accounts.register('alice');
      for (const [index, sent] of [token, 'stale'].entries()) {
        const body = { username: `bob${index}`, password: 'password', auth: { type: 'm.login.dummy' } };
        assert.equal((await server.accounts.call('POST', '/register', { body, token: sent })).status, 200);
      }
    });

    it('POST /register uses the parameters of the first request when later ones omit them', async () => {
      await server.start();
      const challenge = await server.register({ username: 'alice', password: 'password' });
      const { body } = await server.register({ auth: { ...dummy, session: challenge.body['session'] } });
      assert.equal(body['user_id'], '@alice:test');
      await server.accounts.login('alice');
    });

    it('POST /register accepts parameters that are sent after the session began', async () => {
      await server.start();
      const session = (await server.register({})).body['session'];
      const { body } = await server.register({
        username: 'alice',
        password: 'password',
        auth: { ...dummy, session },
      });
      assert.equal(body['user_id'], '@alice:test');
    });

    it('POST /register registers once for each session, and answers repeated requests with the first response', async () => {
      await server.start();
      const parameters = { password: 'password', inhibit_login: true };
      const auth = { ...dummy, session: (await server.register(parameters)).body['session'] };
      const { body } = await server.register({ ...parameters, auth });
      assert.match(body['user_id'] as string, /^@u[0-9a-f]+:test$/);
      assert.deepEqual(Object.keys(body).sort(), ['home_server', 'user_id']);
      assert.deepEqual((await server.register({ ...parameters, auth })).body, body);
      assert.deepEqual((await server.register({ auth })).body, body);
      await server.refuses(403, 'M_FORBIDDEN', { ...parameters, password: 'another', auth });
    });

    it('POST /register answers a repeated request with the same tokens, even if the name is taken by then', async () => {
      await server.start();
      const parameters = { username: 'alice', password: 'password', device_id: 'PHONE' };
      const auth = { ...dummy, session: (await server.register(parameters)).body['session'] };
      const [first, second] = await Promise.all([
        server.register({ ...parameters, auth }),
        server.register({ ...parameters, auth }),
      ]);
      assert.equal(first.status, 200);
      assert.deepEqual([second.status, second.body], [200, first.body]);
      assert.deepEqual((await server.register({ ...parameters, auth })).body, first.body);
      await server.refuses(400, 'M_USER_IN_USE', parameters);
      server.accounts.clock.advance(25 * 3_600_000);
      await server.refuses(400, 'M_USER_IN_USE', { ...parameters, auth });
    });

    it('POST /register refuses taken, invalid and reserved user names, and malformed parameters', async () => {
      // An application service has reserved this user id.
      const reservations = { isReservedFrom: (userId: string) => userId === '@bridge:test' };
      await server.start({ extensions: () => ({ reservations }) });
      await server.accounts.register('alice');
      await server.refuses(400, 'M_USER_IN_USE', { username: 'alice' });
      await server.refuses(400, 'M_USER_IN_USE', { username: 'ALICE' });
      for (const username of ['', 'a b', 'ålice', '@alice:test', '123', '_bridge', 'x'.repeat(250), 'a\0b']) {
        await server.refuses(400, 'M_INVALID_USERNAME', { username });
      }
      await server.refuses(400, 'M_EXCLUSIVE', { username: 'bridge' });
      await server.refuses(400, 'M_BAD_JSON', { username: 5 });
      await server.refuses(400, 'M_MISSING_PARAM', { username: 'bob', auth: dummy });
      await server.refuses(400, 'M_INVALID_PARAM', { username: 'bob' }, '?kind=wizard');
    });

    it('GET /register/available reports whether a user name is free and valid', async () => {
      await server.start();
      await server.accounts.register('alice');
      const available = (name: string) => server.accounts.call('GET', `/register/available?username=${name}`);
      assert.deepEqual((await available('bob')).body, { available: true });
      assert.equal((await available('alice')).body['errcode'], 'M_USER_IN_USE');
      assert.equal((await available('a%20b')).body['errcode'], 'M_INVALID_USERNAME');
      assert.equal(
        (await server.accounts.call('GET', '/register/available')).body['errcode'],
        'M_MISSING_PARAM',
      );
    });

    it('reports a taken user name only when the registration is completed, if inhibit_user_in_use_error is set', async () => {
      await server.start({ options: { inhibit_user_in_use_error: true } });
      await server.accounts.register('alice');
      const available = await server.accounts.call('GET', '/register/available?username=alice');
      assert.deepEqual(available.body, { available: true });
      const parameters = { username: 'alice', password: 'password' };
      assert.equal((await server.register(parameters)).status, 401);
      await server.refuses(400, 'M_USER_IN_USE', { ...parameters, auth: dummy });
    });

    it('POST /register responds 403 M_FORBIDDEN when registration is off, and when nothing verifies users and enable_registration_without_verification is off', async () => {
      await server.start({ options: { enable_registration: false } });
      await server.refuses(403, 'M_FORBIDDEN', { username: 'alice' });
      assert.equal((await server.accounts.call('GET', '/register/available?username=a')).status, 403);
      await server.accounts.stop();
      await server.start({ options: { enable_registration_without_verification: false } });
      await server.refuses(403, 'M_FORBIDDEN', { username: 'alice', password: 'password', auth: dummy });
    });

    it('requires the stage m.login.recaptcha when enable_registration_captcha is true', async () => {
      const stage: Stage = {
        type: 'm.login.recaptcha',
        params: () => ({ public_key: 'site key' }),
        verify: ({ response }) => {
          if (response !== 'right') throw new MatrixError(401, 'M_UNAUTHORIZED', 'Wrong response');
          return response;
        },
      };
      await server.start({
        options: { enable_registration_without_verification: false, enable_registration_captcha: true },
        extensions: () => ({ stages: [stage] }),
      });
      const parameters = { username: 'alice', password: 'password' };
      const challenge = await server.register(parameters);
      assert.deepEqual(challenge.body['flows'], [{ stages: ['m.login.recaptcha', 'm.login.dummy'] }]);
      assert.deepEqual(challenge.body['params'], { 'm.login.recaptcha': { public_key: 'site key' } });
      const auth = { type: 'm.login.recaptcha', session: challenge.body['session'] };
      const failed = await server.register({ ...parameters, auth: { ...auth, response: 'wrong' } });
      assert.deepEqual([failed.status, failed.body['errcode']], [401, 'M_UNAUTHORIZED']);
      assert.equal(failed.body['session'], challenge.body['session']);
      const incomplete = await server.register({ ...parameters, auth: { ...auth, response: 'right' } });
      assert.deepEqual(incomplete.body['completed'], ['m.login.recaptcha']);
      await server.refuses(403, 'M_FORBIDDEN', {
        ...parameters,
        username: 'mallory',
        auth: { ...auth, ...dummy },
      });
      assert.equal(
        (await server.register({ ...parameters, auth: { ...auth, ...dummy } })).body['user_id'],
        '@alice:test',
      );
    });

    it('creates one account when concurrent requests register the same user name', async () => {
      await server.start();
      const body = { username: 'alice', password: 'password', auth: dummy };
      const answers = await Promise.all([1, 2, 3].map(() => server.register(body)));
      assert.deepEqual(answers.map((answer) => answer.status).sort(), [200, 400, 400]);
    });

    it('assigns the default user type to new users [option: user_types.default_user_type]', async () => {
      await server.start({
        options: { user_types: { default_user_type: 'human', extra_user_types: ['human'] } },
      });
      const { userId } = await server.accounts.register('alice');
      assert.equal((await server.accounts.slice.accounts.getUser(userId))?.userType, 'human');
    });
  });
});
