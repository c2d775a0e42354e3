import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { registerAdmin } from '../../test/support/users/register-admin.ts';
import { sendForm } from './test/forms.ts';
import {
  clientPath,
  mailIdentifier,
  parametersOf,
  ServerWithMail,
  statusAndErrcode,
} from './test/server-with-mail.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let fixture: ServerWithMail;
  const start = async (
    ...more: Parameters<typeof ServerWithMail.start> extends [unknown, ...infer M] ? M : never
  ) => {
    fixture = await ServerWithMail.start(open.kind, ...more);
  };
  /** The mail address of the user of a test. */
  let address: string;
  let users = 0;
  /** Registers a user with a mail address. */
  const registerAnna = async () => {
    const name = `anna${++users}`;
    address = `${name}@example.org`;
    const anna = await fixture.server.register(name);
    await fixture.addAddress(anna, address);
    return anna;
  };
  const reset = (credentials: object | undefined, more: object = {}) =>
    fixture.post('/account/password', {
      new_password: 'brand new',
      ...(credentials && { auth: { type: 'm.login.email.identity', threepid_creds: credentials } }),
      ...more,
    });
  const whoami = async (token: string) =>
    (await fixture.server.api('GET', clientPath('/account/whoami'), { token })).status;

  describe('POST /account/password without an access token', () => {
    before(() => start());
    after(() => fixture.stop());

    it('sets the password of the account whose address is validated, and ends its sessions', async () => {
      const anna = await registerAnna();
      const challenge = await reset(undefined);
      assert.equal(challenge.status, 401);
      assert.deepEqual(challenge.body['flows'], [{ stages: ['m.login.email.identity'] }]);
      const { sid, link } = await fixture.receiveLink('account/password', address);
      const auth = {
        type: 'm.login.email.identity',
        threepidCreds: { sid, client_secret: 'secret' },
        session: challenge.body['session'],
      };
      assert.deepEqual(statusAndErrcode(await reset(undefined, { auth })), [401, 'M_UNAUTHORIZED']);
      await fixture.open(link, parametersOf(link));
      const answer = await reset(undefined, { auth });
      assert.deepEqual([answer.status, answer.body], [200, {}]);
      assert.equal(await whoami(anna.token), 401);
      assert.equal((await fixture.login(mailIdentifier(address))).status, 403);
      assert.equal((await fixture.login(mailIdentifier(address), 'brand new')).status, 200);
    });

    it('keeps the sessions with logout_devices: false', async () => {
      const anna = await registerAnna();
      const credentials = await fixture.validate('account/password', address);
      assert.equal((await reset(credentials, { logout_devices: false })).status, 200);
      assert.equal(await whoami(anna.token), 200);
    });

    it('sets a password once for each validation', async () => {
      await registerAnna();
      const { sid, link } = await fixture.receiveLink('account/password', address);
      await fixture.open(link, parametersOf(link));
      const credentials = { sid, client_secret: 'secret' };
      assert.equal((await reset(credentials)).status, 200);
      const again = await reset(credentials, { new_password: 'of the attacker' });
      assert.deepEqual(statusAndErrcode(again), [401, 'M_UNAUTHORIZED']);
      assert.equal((await fixture.open(link)).status, 400);
      assert.equal((await fixture.open(link, parametersOf(link))).status, 400);
    });

    it('rejects validations for other purposes', async () => {
      await registerAnna();
      for (const [purpose, secret] of [
        ['register', 'one'],
        ['account/3pid', 'two'],
      ] as const) {
        const credentials = await fixture.validate(purpose, 'free@example.org', secret);
        assert.deepEqual(statusAndErrcode(await reset(credentials)), [403, 'M_FORBIDDEN'], purpose);
      }
    });

    it('rejects a reset when the address was removed from the account after its validation', async () => {
      const anna = await registerAnna();
      const credentials = await fixture.validate('account/password', address);
      await fixture.post('/account/3pid/delete', { medium: 'email', address }, anna.token);
      assert.equal((await reset(credentials)).status, 404);
    });

    it('refuses logins to a locked account by its new password, through the API and on the login page, and finds no address of a deactivated account', async () => {
      const { userId } = await registerAnna();
      const { token } = await registerAdmin(fixture.server);
      const lock = `/_matrix/client/v1/admin/lock/${userId}`;
      await fixture.server.api('PUT', lock, { token, body: { locked: true } });
      const credentials = await fixture.validate('account/password', address);
      assert.equal((await reset(credentials)).status, 200);
      for (const identifier of [mailIdentifier(address), { type: 'm.id.user', user: userId }])
        assert.deepEqual(statusAndErrcode(await fixture.login(identifier, 'brand new')), [
          401,
          'M_USER_LOCKED',
        ]);
      const fields = { username: address, password: 'brand new' };
      const page = await sendForm(fixture, '/_matrix/static/client/login/', fields);
      assert.equal(page.response.status, 401);
      assert.doesNotMatch(page.text, /access_token/);
      await fixture.server.api('PUT', lock, { token, body: { locked: false } });
      assert.equal((await fixture.login(mailIdentifier(address), 'brand new')).status, 200);
      await fixture.server.api('POST', `/_synapse/admin/v1/deactivate/${userId}`, { token, body: {} });
      const refused = await fixture.requestMail('account/password', address, {
        client_secret: 'late',
      });
      assert.deepEqual(statusAndErrcode(refused), [400, 'M_THREEPID_NOT_FOUND']);
      assert.equal((await fixture.login(mailIdentifier(address), 'brand new')).status, 403);
    });

    it('answers an unknown address with M_THREEPID_NOT_FOUND, and sends no mail', async () => {
      await registerAnna();
      const sent = fixture.mailServer.attempts;
      const answer = await fixture.requestMail('account/password', 'ben@example.org');
      assert.deepEqual(statusAndErrcode(answer), [400, 'M_THREEPID_NOT_FOUND']);
      assert.equal(fixture.mailServer.attempts, sent);
    });
  });

  describe('the page of a password reset', () => {
    before(() => start());
    after(() => fixture.stop());

    it('asks the user for a confirmation, and validates the address only when the form is sent', async () => {
      await registerAnna();
      const { sid, link } = await fixture.receiveLink('account/password', address);
      const page = await fixture.open(link);
      assert.equal(page.status, 200);
      assert.match(page.text, /Set a new password\?/);
      const fields = [...page.text.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [
        name,
        value,
      ]);
      assert.deepEqual(Object.fromEntries(fields), parametersOf(link));
      assert.deepEqual(statusAndErrcode(await reset({ sid, client_secret: 'secret' })), [
        401,
        'M_UNAUTHORIZED',
      ]);
      const done = await fixture.open(link, Object.fromEntries(fields));
      assert.equal(done.status, 200);
      assert.match(done.text, /Almost done/);
      assert.equal((await reset({ sid, client_secret: 'secret' })).status, 200);
    });

    it('lets the Content-Security-Policy allow a redirect of the form to next_link', async () => {
      await registerAnna();
      const next_link = 'https://client.example.org/#/login';
      const { link } = await fixture.receiveLink('account/password', address, { next_link });
      const page = await fixture.open(link);
      assert.match(
        page.headers.get('content-security-policy') ?? '',
        /form-action 'self' https:\/\/client\.example\.org;/,
      );
      const { status, location } = await fixture.open(link, parametersOf(link));
      assert.deepEqual([status, location], [303, next_link]);
    });

    it('shows why a link does not work', async () => {
      await registerAnna();
      const { link } = await fixture.receiveLink('account/password', address);
      const url = new URL(link);
      url.searchParams.set('token', '<script>');
      const { status, text } = await fixture.open(url.href);
      assert.equal(status, 400);
      assert.match(text, /This link or validation is not valid, or has expired/);
      assert.equal(text.includes('<script>'), false);
    });
  });

  describe('options of password resets', () => {
    afterEach(() => fixture.stop());

    it('checks the password policy before the address', async () => {
      const policy = { enabled: true, minimum_length: 12 };
      await start({ password_config: { policy } });
      assert.deepEqual(statusAndErrcode(await reset(undefined)), [400, 'M_PASSWORD_TOO_SHORT']);
    });

    it('answers 401 M_MISSING_TOKEN on a server that can validate no addresses', async () => {
      await start({}, { email: null });
      assert.deepEqual(statusAndErrcode(await reset(undefined)), [401, 'M_MISSING_TOKEN']);
    });
  });
});
