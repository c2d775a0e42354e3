import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { PhoneService } from '../test/phone-service.ts';
import { type AccountsOptions, ServerWithMail, statusAndErrcode } from '../test/server-with-mail.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let fixture: ServerWithMail;
  let phones: PhoneService;
  /** A phone number of the test, as users write it. */
  let number: string;
  let numbers = 100;
  beforeEach(() => {
    number = `07700 900${numbers++}`;
  });
  /** Returns the number without its first zero. */
  const significant = () => number.replace(/\D/g, '').slice(1);
  const stop = async () => {
    await fixture.stop();
    await phones.stop();
  };
  const start = async (options: AccountsOptions = {}) => {
    phones = await PhoneService.start();
    fixture = await ServerWithMail.start(
      open.kind,
      { account_threepid_delegates: { msisdn: phones.url }, ...options },
      { email: null },
    );
  };
  const request = (purpose: string, more: object = {}) =>
    fixture.post(`/${purpose}/msisdn/requestToken`, {
      client_secret: 'secret',
      country: 'GB',
      phone_number: number,
      send_attempt: 1,
      ...more,
    });
  const submit = async ({ sid, submit_url }: Record<string, unknown>, token: string) => {
    const { pathname } = new URL(String(submit_url));
    const body = { sid, client_secret: 'secret', token };
    return fixture.server.api('POST', pathname, { body });
  };
  const stage = (sid: unknown, more: object = {}) => ({
    type: 'm.login.msisdn',
    threepid_creds: { sid, client_secret: 'secret' },
    ...more,
  });
  /** Returns the code in the newest text message. */
  const newestCode = () => `code${phones.sessions.size}`;
  /** Validates the number for a purpose. @returns the credentials of the session */
  const validate = async (purpose: string) => {
    const { body, status, raw } = await request(purpose);
    assert.equal(status, 200, raw);
    assert.deepEqual((await submit(body, newestCode())).body, { success: true });
    return { sid: body['sid'], client_secret: 'secret' };
  };

  describe('phone numbers, with the service of the operator', () => {
    before(() => start());
    after(stop);
    beforeEach(() => {
      phones.requests.length = 0;
      phones.refusal = undefined;
    });

    it('validates phone numbers by the service of the operator [option: account_threepid_delegates.msisdn]', async () => {
      const anna = await fixture.server.register('anna');
      const response = await request('account/3pid', { next_link: 'https://client.example.org/' });
      assert.equal(response.status, 200);
      assert.deepEqual(phones.requests, [
        {
          client_secret: 'secret',
          country: 'GB',
          phone_number: number,
          send_attempt: 1,
          next_link: 'https://client.example.org/',
        },
      ]);
      const credentials = { sid: response.body['sid'], client_secret: 'secret' };
      const early = await fixture.addValidated(anna, credentials);
      assert.deepEqual(statusAndErrcode(early), [400, 'M_THREEPID_AUTH_FAILED']);
      assert.deepEqual((await submit(response.body, 'wrong')).body, { success: false });
      assert.deepEqual((await submit(response.body, newestCode())).body, { success: true });
      assert.equal((await fixture.addValidated(anna, credentials)).status, 200);
      const added_at = fixture.clock.now();
      assert.deepEqual(await fixture.addressesOf(anna), [
        { medium: 'msisdn', address: `44${significant()}`, validated_at: 5, added_at },
      ]);
    });

    it('sends one request to the service for each send attempt', async () => {
      const first = await request('register');
      assert.equal((await request('register')).body['sid'], first.body['sid']);
      assert.equal(phones.requests.length, 1);
      await request('register', { send_attempt: 2 });
      assert.equal(phones.requests.length, 2);
    });

    it('logs in and sets a new password by the phone number', async () => {
      const lena = await fixture.server.register('lena');
      await fixture.addValidated(lena, await validate('account/3pid'));
      const phone = {
        type: 'm.id.phone',
        country: 'GB',
        phone: number.replace(/^(\d+) (\d{3})/, '($1) $2 '),
      };
      assert.equal((await fixture.login(phone)).status, 200);
      assert.equal(
        (await fixture.login({ type: 'm.id.thirdparty', medium: 'msisdn', address: `+44${significant()}` }))
          .status,
        200,
      );
      assert.deepEqual(statusAndErrcode(await fixture.login({ ...phone, phone: '07700 900999' })), [
        403,
        'M_FORBIDDEN',
      ]);
      const { sid } = await validate('account/password');
      const answer = await fixture.post('/account/password', { new_password: 'brand new', auth: stage(sid) });
      assert.equal(answer.status, 200, answer.raw);
      assert.equal((await fixture.login(phone, 'brand new')).status, 200);
    });

    it('rejects a validation for which the service names another phone number than the user requested', async () => {
      const carl = await fixture.server.register('carl');
      const { body } = await request('account/3pid');
      await submit(body, newestCode());
      const sid = String(phones.sessions.size);
      const validated = phones.sessions.get(sid)!;
      phones.sessions.set(sid, { ...validated, address: '447700900998' });
      const answer = await fixture.addValidated(carl, { sid: body['sid'], client_secret: 'secret' });
      assert.deepEqual(statusAndErrcode(answer), [400, 'M_THREEPID_AUTH_FAILED']);
    });

    it('rejects invalid numbers without a request to the service, and returns the errors of the service, but 502 in place of 401', async () => {
      for (const more of [
        { phone_number: '12' },
        { phone_number: 'x' },
        { country: 'QQ' },
        { country: 'G1' },
      ])
        assert.deepEqual(statusAndErrcode(await request('register', more)), [400, 'M_INVALID_PARAM']);
      assert.equal(phones.requests.length, 0);
      phones.refusal = { status: 400, body: { errcode: 'M_DESTINATION_REJECTED' } };
      assert.deepEqual(statusAndErrcode(await request('register')), [400, 'M_DESTINATION_REJECTED']);
      phones.refusal = { status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } };
      assert.deepEqual(statusAndErrcode(await request('register')), [502, 'M_UNKNOWN']);
    });
  });

  describe('registration with a phone number', () => {
    before(() => start({ registrations_require_3pid: ['msisdn'] }));
    after(stop);

    it('registers a user with a phone number [option: registrations_require_3pid]', async () => {
      const register = (auth?: object) =>
        fixture.post('/register', { username: 'anna', password: 'correct horse', ...(auth && { auth }) });
      assert.deepEqual((await register()).body['flows'], [{ stages: ['m.login.msisdn'] }]);
      const { sid } = await validate('register');
      assert.equal((await register(stage(sid))).status, 200);
      const again = await request('register', {
        client_secret: 'other',
        phone_number: `+44 ${significant()}`,
      });
      assert.deepEqual(statusAndErrcode(again), [400, 'M_THREEPID_IN_USE']);
    });

    it('completes the stage m.login.msisdn on the pages for browsers', async () => {
      const challenge = await fixture.post('/register', { username: 'otto', password: 'correct horse' });
      const session = String(challenge.body['session']);
      const path = 'https://test/_matrix/client/v3/auth/m.login.msisdn/fallback/web';
      assert.match(
        (await fixture.open(`${path}?session=${session}`)).text,
        /<label for="phone_number">Phone number/,
      );
      const wrongNumber = await fixture.open(path, { session, country: 'GB', phone_number: '12' });
      assert.match(wrongNumber.text, /role="alert">This is not a valid phone number/);
      const sent = await fixture.open(path, { session, country: 'gb', phone_number: number });
      assert.ok(sent.text.includes(`A text message with a code is on its way to <strong>${number}</strong>`));
      const hidden = [...sent.text.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [
        name,
        value,
      ]);
      const fields: Record<string, string> = Object.fromEntries(hidden);
      const wrong = await fixture.open(path, { ...fields, code: 'guess' });
      assert.match(wrong.text, /role="alert">The code is wrong/);
      assert.equal((await fixture.open(path, { ...fields, code: newestCode() })).status, 200);
      const { status, body } = await fixture.post('/register', { auth: { session } });
      assert.deepEqual([status, body['user_id']], [200, '@otto:test']);
    });
  });

  describe('options of phone numbers', () => {
    afterEach(stop);

    it('allows only numbers that match a pattern [option: allowed_local_3pids[].medium, allowed_local_3pids[].pattern]', async () => {
      await start({ allowed_local_3pids: [{ medium: 'msisdn', pattern: '^33' }] });
      assert.deepEqual(statusAndErrcode(await request('register')), [403, 'M_THREEPID_DENIED']);
      assert.equal(
        (await request('register', { country: 'FR', phone_number: '06 12 34 56 78' })).status,
        200,
      );
    });

    it('answers alike for used and unknown numbers, and sends the request to the service afterwards [option: request_token_inhibit_3pid_errors]', async () => {
      await start({ request_token_inhibit_3pid_errors: true });
      const anna = await fixture.server.register('anna');
      const { body } = await request('account/3pid');
      while (phones.sessions.size === 0) await new Promise((resolve) => setImmediate(resolve));
      const credentials = { sid: body['sid'], client_secret: 'secret' };
      while (!(await submit(body, newestCode())).body['success']);
      assert.equal((await fixture.addValidated(anna, credentials)).status, 200);
      const used = await request('account/3pid', { client_secret: 'two' });
      assert.deepEqual([used.status, Object.keys(used.body).toSorted()], [200, ['sid', 'submit_url']]);
      const unknown = await request('account/password', { phone_number: '07700 900999' });
      assert.equal(unknown.status, 200);
      // The text message to a third number shows that the service received no request between the first and the third.
      const third = { phone_number: '07700 900998', client_secret: 'three' };
      assert.equal((await request('account/3pid', third)).status, 200);
      while (phones.requests.length < 2) await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(
        phones.requests.map(({ phone_number }) => phone_number),
        [number, third.phone_number],
      );
    });

    it('rejects phone numbers with M_THREEPID_MEDIUM_NOT_SUPPORTED when no service is configured', async () => {
      await start({ account_threepid_delegates: { msisdn: null } });
      assert.deepEqual(statusAndErrcode(await request('account/3pid')), [
        400,
        'M_THREEPID_MEDIUM_NOT_SUPPORTED',
      ]);
    });
  });
});
