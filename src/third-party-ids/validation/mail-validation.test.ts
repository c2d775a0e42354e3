import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { forwardedListener } from '../../../test/support/servers/forwarded-listener.ts';
import {
  clientPath,
  linkIn,
  parametersOf,
  ServerWithMail,
  statusAndErrcode,
} from '../test/server-with-mail.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let fixture: ServerWithMail;
  const start = async (
    ...more: Parameters<typeof ServerWithMail.start> extends [unknown, ...infer M] ? M : never
  ) => {
    fixture = await ServerWithMail.start(open.kind, ...more);
  };
  const stop = () => fixture.stop();
  const emailStage = (credentials: object) => ({
    type: 'm.login.email.identity',
    threepid_creds: credentials,
  });
  const register = (username: string, auth?: object) =>
    fixture.post('/register', { username, password: 'correct horse', ...(auth && { auth }) });
  const needsMail = { registrations_require_3pid: ['email'] } as const;

  describe('POST /register/email/requestToken', () => {
    before(() => start());
    after(stop);

    it('sends one mail for each send attempt, in one session', async () => {
      const { attempts } = fixture.mailServer;
      const { sid } = await fixture.receiveLink('register', 'adam@example.org');
      const again = await fixture.requestMail('register', 'adam@example.org');
      assert.deepEqual([again.status, again.body['sid']], [200, sid]);
      const next = await fixture.receiveLink('register', 'adam@example.org', { send_attempt: 2 });
      assert.equal(next.sid, sid);
      assert.equal(fixture.mailServer.attempts, attempts + 2);
      const other = await fixture.receiveLink('register', 'adam@example.org', { client_secret: 'other' });
      assert.notEqual(other.sid, sid);
    });

    it('accepts a time in milliseconds as send_attempt', async () => {
      const { attempts } = fixture.mailServer;
      const { sid } = await fixture.receiveLink('register', 'abel@example.org');
      const options = { send_attempt: 1_795_472_250_991 };
      assert.equal((await fixture.receiveLink('register', 'abel@example.org', options)).sid, sid);
      const again = await fixture.requestMail('register', 'abel@example.org', options);
      assert.deepEqual(
        [again.status, again.body['sid'], fixture.mailServer.attempts],
        [200, sid, attempts + 2],
      );
    });

    it('accepts the links of all mails of a session', async () => {
      const { link } = await fixture.receiveLink('register', 'amos@example.org');
      await fixture.receiveLink('register', 'amos@example.org', { send_attempt: 2 });
      assert.equal((await fixture.open(link)).status, 200);
      assert.equal((await fixture.open(link)).status, 200);
    });

    it('rejects addresses in use with M_THREEPID_IN_USE', async () => {
      const iris = await fixture.server.register('iris');
      await fixture.addAddress(iris, 'iris@example.org');
      assert.deepEqual(statusAndErrcode(await fixture.requestMail('register', 'IRIS@example.org')), [
        400,
        'M_THREEPID_IN_USE',
      ]);
    });

    it('rejects malformed addresses and secrets with M_INVALID_PARAM', async () => {
      const { attempts } = fixture.mailServer;
      for (const email of [
        'anna',
        '@example.org',
        'a@b@c.org',
        'a b@example.org',
        'a@example.org, b@example.org',
        'Anna <anna@example.org>',
        'a\r\nBcc:b@example.org',
        'a\0@example.org',
      ]) {
        assert.deepEqual(
          statusAndErrcode(await fixture.requestMail('register', email)),
          [400, 'M_INVALID_PARAM'],
          email,
        );
      }
      const answer = await fixture.requestMail('register', 'a@example.org', { client_secret: 'no spaces' });
      assert.deepEqual(statusAndErrcode(answer), [400, 'M_INVALID_PARAM']);
      assert.equal(fixture.mailServer.attempts, attempts);
    });

    it('redirects the browser to next_link after the validation', async () => {
      const next_link = 'https://client.example.org/#/next?a=b';
      const { link } = await fixture.receiveLink('register', 'nils@example.org', { next_link });
      const { status, location } = await fixture.open(link);
      assert.deepEqual([status, location], [303, next_link]);
    });

    it('next_link must be an http or https URL', async () => {
      for (const next_link of [
        'javascript:alert(1)',
        'file:///etc/passwd',
        'data:text/html,x',
        'client',
        'app:/',
      ]) {
        const answer = await fixture.requestMail('register', 'anna@example.org', { next_link });
        assert.deepEqual(statusAndErrcode(answer), [400, 'M_INVALID_PARAM'], next_link);
      }
    });
  });

  describe('registration with a mail address', () => {
    before(() => start(needsMail, { email: { validation_token_lifetime: 60_000 } }));
    after(stop);

    it('sends a mail with a link, and registers a user once the link has validated the address [option: registrations_require_3pid, email.validation_token_lifetime]', async () => {
      const challenge = await register('anna');
      assert.deepEqual(challenge.body['flows'], [{ stages: ['m.login.email.identity'] }]);
      const { session } = challenge.body as { session: string };
      const { sid, link } = await fixture.receiveLink('register', 'Anna@Example.org');
      const stage = { ...emailStage({ sid, client_secret: 'secret' }), session };
      assert.deepEqual(statusAndErrcode(await register('anna', stage)), [401, 'M_UNAUTHORIZED']);
      fixture.clock.advance(59_000);
      const page = await fixture.open(link);
      assert.equal(page.status, 200);
      assert.match(page.text, /Your address is confirmed/);
      assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
      const { status, body } = await register('anna', stage);
      assert.equal(status, 200);
      const [{ validated_at, ...address } = {}] = await fixture.addressesOf({
        token: String(body['access_token']),
      });
      assert.deepEqual(address, {
        medium: 'email',
        address: 'anna@example.org',
        added_at: fixture.clock.now(),
      });
      assert.equal(validated_at, fixture.clock.now());
    });

    it('validates no address when a program checks a link by HEAD', async () => {
      const { link, sid } = await fixture.receiveLink('register', 'hans@example.org');
      const { pathname, search } = new URL(link);
      const { status } = await fetch(fixture.server.baseUrl + pathname + search, { method: 'HEAD' });
      assert.equal(status, 200);
      const stage = emailStage({ sid, client_secret: 'secret' });
      assert.deepEqual(statusAndErrcode(await register('hans', stage)), [401, 'M_UNAUTHORIZED']);
      await fixture.open(link);
      assert.equal((await register('hans', stage)).status, 200);
    });

    it('shows a page with the reason for a link that has expired [option: email.validation_token_lifetime]', async () => {
      const { link } = await fixture.receiveLink('register', 'emil@example.org');
      fixture.clock.advance(60_001);
      const { status, text } = await fixture.open(link);
      assert.equal(status, 400);
      assert.match(text, /This link does not work/);
      assert.match(text, /This link or validation is not valid, or has expired/);
    });

    it('rejects a link with the token, the secret or the session id of another session', async () => {
      const mine = parametersOf((await fixture.receiveLink('register', 'hugo@example.org')).link);
      const { link, sid } = await fixture.receiveLink('register', 'hera@example.org', {
        client_secret: 'hers',
      });
      const theirs = parametersOf(link);
      for (const changed of [{ token: mine['token']! }, { client_secret: 'secret' }, { sid: mine['sid']! }]) {
        const url = new URL(link);
        for (const [name, value] of Object.entries(changed)) url.searchParams.set(name, value);
        assert.equal((await fixture.open(url.href)).status, 400, url.search);
      }
      const stage = emailStage({ sid, client_secret: theirs['client_secret'] });
      assert.deepEqual(statusAndErrcode(await register('hugo', stage)), [401, 'M_UNAUTHORIZED']);
    });

    it('rejects the validation of another client and of an unknown session, and a stage without a session', async () => {
      const { sid } = await fixture.validate('register', 'otis@example.org');
      for (const credentials of [
        { sid, client_secret: 'guessed' },
        { sid: 'unknown', client_secret: 'secret' },
        { sid: 'a\0b', client_secret: 'secret' },
      ]) {
        assert.deepEqual(statusAndErrcode(await register('owen', emailStage(credentials))), [
          401,
          'M_UNAUTHORIZED',
        ]);
      }
      assert.deepEqual(statusAndErrcode(await register('owen', { type: 'm.login.email.identity' })), [
        401,
        'M_MISSING_PARAM',
      ]);
    });

    it('registers only one account when two registrations use one validation', async () => {
      const credentials = await fixture.validate('register', 'olga@example.org');
      assert.equal((await register('olga', emailStage(credentials))).status, 200);
      assert.deepEqual(statusAndErrcode(await register('orla', emailStage(credentials))), [
        401,
        'M_UNAUTHORIZED',
      ]);
    });

    it('rejects the validation of an address when another user has registered with the address in the meantime', async () => {
      const mine = await fixture.validate('register', 'dora@example.org', 'one');
      const { body } = await register('dirk');
      const other = await fixture.validate('register', 'dora@example.org', 'two');
      const session = { session: body['session'] };
      assert.equal((await register('dora', emailStage(mine))).status, 200);
      const late = await register('dirk', { ...emailStage(other), ...session });
      assert.deepEqual(statusAndErrcode(late), [401, 'M_UNAUTHORIZED']);
    });
  });

  describe('options of validations by mail', () => {
    afterEach(stop);

    it('allows only addresses whose beginning matches a pattern [option: allowed_local_3pids[].medium, allowed_local_3pids[].pattern]', async () => {
      const allowed_local_3pids = [
        { medium: 'email' as const, pattern: '[^@]+@example\\.org$' },
        { medium: 'msisdn' as const, pattern: '44' },
      ];
      await start({ ...needsMail, allowed_local_3pids });
      assert.equal((await fixture.requestMail('register', 'anna@example.org')).status, 200);
      for (const address of ['anna@example.com', 'anna@example.org.evil.com', '44@a.org']) {
        assert.deepEqual(
          statusAndErrcode(await fixture.requestMail('register', address)),
          [403, 'M_THREEPID_DENIED'],
          address,
        );
        assert.deepEqual(statusAndErrcode(await fixture.requestMail('account/3pid', address)), [
          403,
          'M_THREEPID_DENIED',
        ]);
      }
    });

    it('limits validation mails by the IP address of the client and by the mail address [option: rc_3pid_validation]', async () => {
      const rc_3pid_validation = { per_second: 0.001, burst_count: 2 };
      await start({}, { rateLimits: { rc_3pid_validation }, http: forwardedListener });
      let requests = 0;
      const statusOf = async (email: string, ip: string) => {
        requests += 1;
        const body = { client_secret: 'secret', email, send_attempt: requests };
        const headers = { 'x-forwarded-for': ip };
        const path = clientPath('/register/email/requestToken');
        return (await fixture.server.api('POST', path, { body, headers })).status;
      };
      assert.equal(await statusOf('anna@example.org', '203.0.113.1'), 200);
      assert.equal(await statusOf('anna@example.org', '203.0.113.1'), 200);
      assert.equal(await statusOf('ben@example.org', '203.0.113.1'), 429);
      assert.equal(await statusOf('anna@example.org', '203.0.113.2'), 429);
      assert.equal(await statusOf('ben@example.org', '203.0.113.2'), 200);
    });

    it('next_link may lead to an allowed domain only [option: next_link_domain_whitelist]', async () => {
      await start({ next_link_domain_whitelist: ['client.example.org'] });
      const request = (next_link: string) =>
        fixture.requestMail('register', 'anna@example.org', { next_link });
      assert.equal((await request('https://client.example.org:8443/path')).status, 200);
      for (const next_link of [
        'https://evil.example.org/',
        'https://client.example.org.evil.org/',
        'https://evil.org/client.example.org',
        'https://client.example.org@evil.org/',
        'https://evil.org\\@client.example.org/',
        '//client.example.org/',
      ]) {
        assert.deepEqual(statusAndErrcode(await request(next_link)), [400, 'M_INVALID_PARAM'], next_link);
      }
    });

    it('refuses every next_link when the list of domains is empty [option: next_link_domain_whitelist]', async () => {
      await start({ next_link_domain_whitelist: [] });
      const next_link = 'https://client.example.org/';
      assert.deepEqual(
        statusAndErrcode(await fixture.requestMail('register', 'a@example.org', { next_link })),
        [400, 'M_INVALID_PARAM'],
      );
      assert.equal((await fixture.requestMail('register', 'a@example.org')).status, 200);
    });

    it('answers requests for used and unknown addresses alike [option: request_token_inhibit_3pid_errors]', async () => {
      await start({ request_token_inhibit_3pid_errors: true });
      const anna = await fixture.server.register('anna');
      await fixture.addAddress(anna, 'anna@example.org');
      const before = fixture.mailServer.received.length;
      for (const purpose of ['register', 'account/3pid', 'account/password']) {
        for (const address of ['anna@example.org', 'ben@example.org']) {
          const { status, body } = await fixture.requestMail(purpose, address);
          assert.equal(status, 200);
          assert.deepEqual(Object.keys(body), ['sid']);
          assert.match(String(body['sid']), /^\w{24}$/);
        }
      }
      const mails = await Promise.all(
        [0, 1, 2, 3, 4].map((index) => fixture.mailServer.mail(before + index)),
      );
      const subjects = mails.map(({ to, content }) => `${to} ${content.html?.match(/<h1>(.*)<\/h1>/)?.[1]}`);
      assert.deepEqual(subjects.toSorted(), [
        'anna@example.org Set a new password',
        'anna@example.org You have an account already',
        'anna@example.org You have an account already',
        'ben@example.org Confirm your mail address',
        'ben@example.org Confirm your mail address',
      ]);
    });

    it('rejects requests for validation mails with M_THREEPID_MEDIUM_NOT_SUPPORTED on a server without the option email', async () => {
      await start({}, { email: null });
      for (const purpose of ['register', 'account/3pid', 'account/password']) {
        const answer = await fixture.requestMail(purpose, 'anna@example.org');
        assert.deepEqual(statusAndErrcode(answer), [400, 'M_THREEPID_MEDIUM_NOT_SUPPORTED']);
      }
    });

    it('validation mails have the subject and the app name of the options [option: email.subjects.email_validation, email.subjects.password_reset]', async () => {
      const subjects = {
        email_validation: '%(app)s: your address',
        password_reset: '%(server_name)s: password',
      };
      await start({}, { email: { app_name: 'Fire', subjects } });
      const anna = await fixture.server.register('anna');
      await fixture.addAddress(anna, 'anna@example.org');
      await fixture.receiveLink('account/password', 'anna@example.org');
      const [first, second] = fixture.mailServer.received;
      assert.deepEqual(
        [first?.content.subject, second?.content.subject],
        ['Fire: your address', 'test: password'],
      );
      assert.match(first?.content.html ?? '', /<p class="app">Fire<\/p>/);
    });

    it('validation mails link to the public address of the server', async () => {
      await start({}, { server: { public_baseurl: 'https://chat.example.org/matrix/' } });
      await fixture.requestMail('register', 'anna@example.org');
      const link = linkIn(await fixture.mailServer.mail(0));
      assert.match(link, /^https:\/\/chat\.example\.org\/matrix\/_matrix\/client\/unstable\/registration\//);
    });
  });
});
