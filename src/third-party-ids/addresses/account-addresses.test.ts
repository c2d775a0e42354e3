import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  clientPath,
  loginBody,
  mailIdentifier,
  ServerWithMail,
  statusAndErrcode,
} from '../test/server-with-mail.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let fixture: ServerWithMail;
  afterEach(() => fixture.stop());
  const start = async (
    ...more: Parameters<typeof ServerWithMail.start> extends [unknown, ...infer M] ? M : never
  ) => {
    fixture = await ServerWithMail.start(open.kind, ...more);
  };
  const remove = (user: { token: string }, address: string) =>
    fixture.post('/account/3pid/delete', { medium: 'email', address }, user.token);

  describe('POST /account/3pid/add', () => {
    it('adds a validated address when the user confirms with the password', async () => {
      await start();
      const anna = await fixture.server.register('anna');
      assert.deepEqual(await fixture.addressesOf(anna), []);
      const credentials = await fixture.validate('account/3pid', 'Anna@Example.org');
      const validated_at = fixture.clock.now();
      fixture.clock.advance(5_000);
      const { status, body } = await fixture.addValidated(anna, credentials);
      assert.deepEqual([status, body], [200, {}]);
      const added_at = fixture.clock.now();
      assert.deepEqual(await fixture.addressesOf(anna), [
        { medium: 'email', address: 'anna@example.org', validated_at, added_at },
      ]);
    });

    it('rejects an address that has not been validated, with M_THREEPID_AUTH_FAILED', async () => {
      await start();
      const anna = await fixture.server.register('anna');
      const { sid } = await fixture.receiveLink('account/3pid', 'anna@example.org');
      const answer = await fixture.addValidated(anna, { sid, client_secret: 'secret' });
      assert.deepEqual(statusAndErrcode(answer), [400, 'M_THREEPID_AUTH_FAILED']);
      assert.deepEqual(await fixture.addressesOf(anna), []);
    });

    it('rejects an address that was added to another account since its validation began', async () => {
      await start();
      const [anna, eve] = [await fixture.server.register('anna'), await fixture.server.register('eve')];
      const theirs = await fixture.validate('account/3pid', 'anna@example.org', 'eve');
      await fixture.addAddress(anna, 'anna@example.org');
      const answer = await fixture.addValidated(eve, theirs);
      assert.deepEqual(statusAndErrcode(answer), [400, 'M_THREEPID_AUTH_FAILED']);
      assert.deepEqual(
        [(await fixture.addressesOf(eve)).length, (await fixture.addressesOf(anna)).length],
        [0, 1],
      );
    });

    it('adds an address to one of two accounts that use one validation at the same time', async () => {
      await start();
      const [anna, eve] = [await fixture.server.register('anna'), await fixture.server.register('eve')];
      const credentials = await fixture.validate('account/3pid', 'anna@example.org');
      const answers = await Promise.all([anna, eve].map((user) => fixture.addValidated(user, credentials)));
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400]);
      const lists = await Promise.all([anna, eve].map((user) => fixture.addressesOf(user)));
      assert.equal(lists.flat().length, 1);
    });

    it('rejects validations for other purposes', async () => {
      await start();
      const anna = await fixture.server.register('anna');
      await fixture.addAddress(anna, 'anna@example.org');
      const ofRegistration = await fixture.validate('register', 'other@example.org');
      const ofReset = await fixture.validate('account/password', 'anna@example.org');
      for (const credentials of [ofRegistration, ofReset]) {
        const answer = await fixture.addValidated(anna, credentials);
        assert.deepEqual(statusAndErrcode(answer), [400, 'M_THREEPID_AUTH_FAILED']);
      }
    });

    it('asks for the password each time, also within ui_auth.session_timeout', async () => {
      await start({ ui_auth: { session_timeout: 600_000 } });
      const anna = await fixture.server.register('anna');
      await fixture.addAddress(anna, 'one@example.org');
      const credentials = await fixture.validate('account/3pid', 'two@example.org', 'two');
      assert.equal((await fixture.post('/account/3pid/add', credentials, anna.token)).status, 401);
      const wrong = await fixture.addValidated(anna, credentials, 'wrong password');
      assert.deepEqual(statusAndErrcode(wrong), [401, 'M_FORBIDDEN']);
    });
  });

  describe('POST /account/3pid', () => {
    it('adds a validated address like /account/3pid/add, and answers 403 to a second use of the validation', async () => {
      await start();
      const anna = await fixture.server.register('anna');
      const credentials = await fixture.validate('account/3pid', 'anna@example.org');
      for (const name of ['three_pid_creds', 'threePidCreds']) {
        const body = { [name]: { ...credentials, id_server: 'id.example', id_access_token: 'token' } };
        const challenge = await fixture.post('/account/3pid', body, anna.token);
        assert.equal(challenge.status, 401);
        const auth = {
          ...loginBody({ type: 'm.id.user', user: 'anna' }, 'correct horse'),
          session: challenge.body['session'],
        };
        const answer = await fixture.post('/account/3pid', { ...body, auth }, anna.token);
        const expected = name === 'three_pid_creds' ? [200, undefined] : [403, 'M_THREEPID_AUTH_FAILED'];
        assert.deepEqual(statusAndErrcode(answer), expected);
      }
      assert.equal((await fixture.addressesOf(anna)).length, 1);
      assert.deepEqual(statusAndErrcode(await fixture.post('/account/3pid', {}, anna.token)), [
        400,
        'M_MISSING_PARAM',
      ]);
    });
  });

  describe('POST /account/3pid/delete', () => {
    it("removes the user's own address in any spelling, and no address of others", async () => {
      await start();
      const [anna, eve] = [await fixture.server.register('anna'), await fixture.server.register('eve')];
      await fixture.addAddress(anna, 'anna@example.org');
      const result = { id_server_unbind_result: 'no-support' };
      assert.deepEqual((await remove(eve, 'anna@example.org')).body, result);
      assert.equal((await fixture.addressesOf(anna)).length, 1);
      assert.deepEqual((await remove(anna, 'ANNA@Example.org')).body, result);
      assert.deepEqual(await fixture.addressesOf(anna), []);
      await fixture.addAddress(eve, 'anna@example.org');
    });
  });

  describe('enable_3pid_changes', () => {
    it('the capability m.3pid_changes is disabled and users cannot change addresses when enable_3pid_changes is off [option: enable_3pid_changes]', async () => {
      await start({ enable_3pid_changes: false, registrations_require_3pid: ['email'] });
      const credentials = await fixture.validate('register', 'anna@example.org');
      const auth = { type: 'm.login.email.identity', threepid_creds: credentials };
      const { body } = await fixture.post('/register', { username: 'anna', password: 'correct horse', auth });
      const anna = { token: String(body['access_token']) };
      for (const answer of [
        await fixture.requestMail('account/3pid', 'two@example.org'),
        await fixture.post('/account/3pid/add', credentials, anna.token),
        await fixture.post('/account/3pid', { three_pid_creds: credentials }, anna.token),
        await remove(anna, 'anna@example.org'),
      ]) {
        assert.deepEqual(statusAndErrcode(answer), [403, 'M_FORBIDDEN']);
      }
      assert.equal((await fixture.addressesOf(anna)).length, 1);
      const found = await fixture.server.api('GET', clientPath('/capabilities'), anna);
      const capabilities = found.body['capabilities'] as Record<string, unknown>;
      assert.deepEqual(capabilities['m.3pid_changes'], { enabled: false });
    });

    it('the capability m.3pid_changes is enabled by default [option: enable_3pid_changes]', async () => {
      await start();
      const { token } = await fixture.server.register('anna');
      const found = await fixture.server.api('GET', clientPath('/capabilities'), { token });
      const capabilities = found.body['capabilities'] as Record<string, unknown>;
      assert.deepEqual(capabilities['m.3pid_changes'], { enabled: true });
    });
  });

  describe('POST /login with an address', () => {
    it('logs in the owner of the address', async () => {
      await start();
      const anna = await fixture.server.register('anna');
      await fixture.addAddress(anna, 'anna@example.org');
      const { status, body } = await fixture.login(mailIdentifier('Anna@example.org'));
      assert.deepEqual([status, body['user_id']], [200, anna.userId]);
      const older = { type: 'm.login.password', medium: 'email', address: 'anna@example.org' };
      assert.equal((await fixture.post('/login', { ...older, password: 'correct horse' })).status, 200);
    });

    it('an address and the password are accepted in user-interactive authentication', async () => {
      await start();
      const anna = await fixture.server.register('anna');
      await fixture.addAddress(anna, 'anna@example.org');
      const auth = loginBody(mailIdentifier('anna@example.org'), 'correct horse');
      const answer = await fixture.post('/account/password', { new_password: 'a new one', auth }, anna.token);
      assert.equal(answer.status, 200);
    });

    it('answers alike for unknown addresses, removed addresses and wrong passwords', async () => {
      await start();
      const anna = await fixture.server.register('anna');
      await fixture.addAddress(anna, 'anna@example.org');
      const wrong = await fixture.login(mailIdentifier('anna@example.org'), 'wrong');
      const unknown = await fixture.login(mailIdentifier('ben@example.org'));
      await remove(anna, 'anna@example.org');
      const removed = await fixture.login(mailIdentifier('anna@example.org'));
      assert.deepEqual(statusAndErrcode(wrong), [403, 'M_FORBIDDEN']);
      assert.deepEqual([unknown.raw, removed.raw], [wrong.raw, wrong.raw]);
      for (const identifier of [
        { type: 'm.id.thirdparty', medium: 'email' },
        { type: 'm.id.thirdparty', medium: 'email', address: 5 },
      ]) {
        assert.deepEqual(statusAndErrcode(await fixture.login(identifier)), [400, 'M_MISSING_PARAM']);
      }
      assert.deepEqual(statusAndErrcode(await fixture.login(mailIdentifier('a\0b'))), [403, 'M_FORBIDDEN']);
    });

    it('counts failed logins by the mail address and by the user name of an account together', async () => {
      const rc_login = { failed_attempts: { per_second: 0.001, burst_count: 2 } };
      await start({}, { rateLimits: { rc_login } });
      const anna = await fixture.server.register('anna');
      await fixture.addAddress(anna, 'anna@example.org');
      await fixture.login(mailIdentifier('anna@example.org'), 'wrong');
      await fixture.login({ type: 'm.id.user', user: 'anna' }, 'wrong');
      for (const identifier of [mailIdentifier('anna@example.org'), { type: 'm.id.user', user: 'anna' }])
        assert.deepEqual(statusAndErrcode(await fixture.login(identifier)), [429, 'M_LIMIT_EXCEEDED']);
    });
  });

  describe('POST /account/deactivate', () => {
    it('frees the addresses of the account', async () => {
      await start();
      const anna = await fixture.server.register('anna');
      await fixture.addAddress(anna, 'anna@example.org');
      const auth = loginBody({ type: 'm.id.user', user: 'anna' }, 'correct horse');
      const { status, body } = await fixture.post('/account/deactivate', { auth }, anna.token);
      assert.deepEqual([status, body], [200, { id_server_unbind_result: 'success' }]);
      await fixture.addAddress(await fixture.server.register('ben'), 'anna@example.org');
    });
  });
});
