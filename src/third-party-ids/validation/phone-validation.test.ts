import assert from 'node:assert/strict';
import { afterEach, beforeEach, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { PhoneService } from '../test/phone-service.ts';
import { codeOf, type Options, ServerWithMail } from '../test/server-with-mail.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let fixture: ServerWithMail;
  let phones: PhoneService;
  beforeEach(async () => {
    phones = await PhoneService.start();
  });
  afterEach(async () => {
    await fixture.stop();
    await phones.stop();
  });
  const start = async (options: Options = {}) => {
    fixture = await ServerWithMail.start(
      open.kind,
      { account_threepid_delegates: { msisdn: phones.url }, ...options },
      { email: null },
    );
  };
  const ask = (purpose: string, more: object = {}) =>
    fixture.post(`/${purpose}/msisdn/requestToken`, {
      client_secret: 'secret',
      country: 'GB',
      phone_number: '07700 900123',
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
  /** Validates the number for a purpose. @returns the credentials of the session */
  const validate = async (purpose: string) => {
    const { body, status, raw } = await ask(purpose);
    assert.equal(status, 200, raw);
    assert.deepEqual((await submit(body, `code${phones.sessions.size}`)).body, { success: true });
    return { sid: body['sid'], client_secret: 'secret' };
  };

  it('validates phone numbers by the service of the operator [option: account_threepid_delegates.msisdn]', async () => {
    await start();
    const anna = await fixture.server.register('anna');
    const asked = await ask('account/3pid', { next_link: 'https://client.example.org/' });
    assert.equal(asked.status, 200);
    assert.deepEqual(phones.requests, [
      {
        client_secret: 'secret',
        country: 'GB',
        phone_number: '07700 900123',
        send_attempt: 1,
        next_link: 'https://client.example.org/',
      },
    ]);
    const credentials = { sid: asked.body['sid'], client_secret: 'secret' };
    const early = await fixture.addValidated(anna, credentials);
    assert.deepEqual(codeOf(early), [400, 'M_THREEPID_AUTH_FAILED']);
    assert.deepEqual((await submit(asked.body, 'wrong')).body, { success: false });
    assert.deepEqual((await submit(asked.body, 'code1')).body, { success: true });
    assert.equal((await fixture.addValidated(anna, credentials)).status, 200);
    const added_at = fixture.clock.now();
    assert.deepEqual(await fixture.addressesOf(anna), [
      { medium: 'msisdn', address: '447700900123', validated_at: 5, added_at },
    ]);
  });

  it('asks the service once for each send attempt', async () => {
    await start();
    const first = await ask('register');
    assert.equal((await ask('register')).body['sid'], first.body['sid']);
    assert.equal(phones.requests.length, 1);
    await ask('register', { send_attempt: 2 });
    assert.equal(phones.requests.length, 2);
  });

  it('registers a user with a phone number [option: registrations_require_3pid]', async () => {
    await start({ registrations_require_3pid: ['msisdn'] });
    const register = (auth?: object) =>
      fixture.post('/register', { username: 'anna', password: 'correct horse', ...(auth && { auth }) });
    assert.deepEqual((await register()).body['flows'], [{ stages: ['m.login.msisdn'] }]);
    const { sid } = await validate('register');
    assert.equal((await register(stage(sid))).status, 200);
    const again = await ask('register', { client_secret: 'other', phone_number: '+44 7700 900123' });
    assert.deepEqual(codeOf(again), [400, 'M_THREEPID_IN_USE']);
  });

  it('logs in and sets a new password by the phone number', async () => {
    await start();
    const anna = await fixture.server.register('anna');
    await fixture.addValidated(anna, await validate('account/3pid'));
    const phone = { type: 'm.id.phone', country: 'GB', phone: '(07700) 900 123' };
    assert.equal((await fixture.login(phone)).status, 200);
    assert.equal(
      (await fixture.login({ type: 'm.id.thirdparty', medium: 'msisdn', address: '+447700900123' })).status,
      200,
    );
    assert.deepEqual(codeOf(await fixture.login({ ...phone, phone: '07700 900124' })), [403, 'M_FORBIDDEN']);
    const { sid } = await validate('account/password');
    const answer = await fixture.post('/account/password', { new_password: 'brand new', auth: stage(sid) });
    assert.equal(answer.status, 200, answer.raw);
    assert.equal((await fixture.login(phone, 'brand new')).status, 200);
  });

  it('does not confuse the phone number of another session of the service with the validated number', async () => {
    await start();
    const anna = await fixture.server.register('anna');
    const { body } = await ask('account/3pid');
    await submit(body, 'code1');
    const validated = phones.sessions.get('1')!;
    phones.sessions.set('1', { ...validated, address: '447700900999' });
    const answer = await fixture.addValidated(anna, { sid: body['sid'], client_secret: 'secret' });
    assert.deepEqual(codeOf(answer), [400, 'M_THREEPID_AUTH_FAILED']);
  });

  it('rejects invalid numbers before the service is asked, and passes on what the service rejects', async () => {
    await start();
    for (const more of [{ phone_number: '12' }, { phone_number: 'x' }, { country: 'QQ' }, { country: 'G1' }])
      assert.deepEqual(codeOf(await ask('register', more)), [400, 'M_INVALID_PARAM']);
    assert.equal(phones.requests.length, 0);
    phones.refusal = { status: 400, body: { errcode: 'M_DESTINATION_REJECTED' } };
    assert.deepEqual(codeOf(await ask('register')), [400, 'M_DESTINATION_REJECTED']);
    phones.refusal = { status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } };
    assert.deepEqual(codeOf(await ask('register')), [502, 'M_UNKNOWN']);
  });

  it('allows only numbers that match a pattern [option: allowed_local_3pids[].medium, allowed_local_3pids[].pattern]', async () => {
    await start({ allowed_local_3pids: [{ medium: 'msisdn', pattern: '^33' }] });
    assert.deepEqual(codeOf(await ask('register')), [403, 'M_THREEPID_DENIED']);
    assert.equal((await ask('register', { country: 'FR', phone_number: '06 12 34 56 78' })).status, 200);
  });

  it('answers alike for used and unknown numbers, and asks the service afterwards [option: request_token_inhibit_3pid_errors]', async () => {
    await start({ request_token_inhibit_3pid_errors: true });
    const anna = await fixture.server.register('anna');
    const { body } = await ask('account/3pid');
    while (phones.sessions.size === 0) await new Promise((resolve) => setImmediate(resolve));
    const credentials = { sid: body['sid'], client_secret: 'secret' };
    while (!(await submit(body, 'code1')).body['success']);
    assert.equal((await fixture.addValidated(anna, credentials)).status, 200);
    const used = await ask('account/3pid', { client_secret: 'two' });
    assert.deepEqual([used.status, Object.keys(used.body).toSorted()], [200, ['sid', 'submit_url']]);
    const unknown = await ask('account/password', { phone_number: '07700 900124' });
    assert.equal(unknown.status, 200);
    assert.equal(phones.requests.length, 1);
  });

  it('completes the stage on the pages for browsers', async () => {
    await start({ registrations_require_3pid: ['msisdn'] });
    const asked = await fixture.post('/register', { username: 'anna', password: 'correct horse' });
    const session = String(asked.body['session']);
    const path = 'https://test/_matrix/client/v3/auth/m.login.msisdn/fallback/web';
    assert.match(
      (await fixture.open(`${path}?session=${session}`)).text,
      /<label for="phone_number">Phone number/,
    );
    const wrongNumber = await fixture.open(path, { session, country: 'GB', phone_number: '12' });
    assert.match(wrongNumber.text, /role="alert">This is not a valid phone number/);
    const sent = await fixture.open(path, { session, country: 'gb', phone_number: '07700 900123' });
    assert.match(sent.text, /A text message with a code is on its way to <strong>07700 900123<\/strong>/);
    const hidden = [...sent.text.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [
      name,
      value,
    ]);
    const fields: Record<string, string> = Object.fromEntries(hidden);
    const wrong = await fixture.open(path, { ...fields, code: 'guess' });
    assert.match(wrong.text, /role="alert">The code is wrong/);
    assert.equal((await fixture.open(path, { ...fields, code: 'code1' })).status, 200);
    const { status, body } = await fixture.post('/register', { auth: { session } });
    assert.deepEqual([status, body['user_id']], [200, '@anna:test']);
  });

  it('rejects phone numbers with M_THREEPID_MEDIUM_NOT_SUPPORTED without a service', async () => {
    fixture = await ServerWithMail.start(open.kind, {}, { email: null });
    assert.deepEqual(codeOf(await ask('account/3pid')), [400, 'M_THREEPID_MEDIUM_NOT_SUPPORTED']);
  });
});
