import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { loadConfigurationSources } from '../../src/configuration/load.ts';
import { CaptchaService } from '../support/other-servers/captcha-service.ts';
import { callApi } from '../support/servers/api-call.ts';
import { startConfigured } from '../support/servers/configured-server.ts';
import { type ConfigurationOverrides, startTestServer, type TestServer } from '../support/servers/server.ts';

/** Options of registration, tested on a whole homeserver. */
describe('options of registration', () => {
  let server: TestServer | undefined;
  let captcha: CaptchaService;
  const folder = mkdtempSync(join(tmpdir(), 'hearth-registration-'));
  before(async () => {
    captcha = await CaptchaService.start();
  });
  after(async () => {
    await captcha.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  afterEach(async () => {
    await server?.stop();
    server = undefined;
    captcha.status = 200;
  });

  const outbound = { ip_range_whitelist: ['127.0.0.0/8'] };
  const start = async (
    accounts: ConfigurationOverrides['accounts'],
    more: ConfigurationOverrides = { outbound },
  ) => {
    const options = { enable_registration_without_verification: false, ...accounts };
    server = await startTestServer({ database: 'sqlite', config: { ...more, accounts: options } });
  };
  const register = (body: Record<string, unknown>) =>
    server!.api('POST', '/_matrix/client/v3/register', { body });
  const account = { username: 'alice', password: 'correct horse' };
  const captchaOptions = () => ({
    enable_registration_captcha: true,
    recaptcha_public_key: 'the public key',
    recaptcha_private_key: 'the private key',
    recaptcha_siteverify_api: captcha.api,
  });

  it('requires a CAPTCHA, and lets the CAPTCHA service verify the solution [option: enable_registration_captcha, recaptcha_public_key, recaptcha_private_key, recaptcha_siteverify_api]', async () => {
    await start(captchaOptions());
    const challenge = await register(account);
    assert.deepEqual(challenge.body['flows'], [{ stages: ['m.login.recaptcha', 'm.login.dummy'] }]);
    assert.deepEqual(challenge.body['params'], { 'm.login.recaptcha': { public_key: 'the public key' } });
    const { session } = challenge.body;
    const solve = (response: unknown) => register({ auth: { type: 'm.login.recaptcha', session, response } });
    for (const [response, errcode] of [
      ['', 'M_CAPTCHA_NEEDED'],
      [5, 'M_CAPTCHA_NEEDED'],
      ['wrong', 'M_CAPTCHA_INVALID'],
    ]) {
      const failed = await solve(response);
      assert.deepEqual([failed.status, failed.body['errcode'], failed.body['completed']], [401, errcode, []]);
    }
    assert.deepEqual((await solve('solved 1')).body['completed'], ['m.login.recaptcha']);
    assert.deepEqual(captcha.verifications.at(-1), {
      secret: 'the private key',
      response: 'solved 1',
      remoteip: '127.0.0.1',
    });
    const { status, body } = await register({ auth: { type: 'm.login.dummy', session } });
    assert.deepEqual([status, body['user_id']], [200, '@alice:test']);
    const { session: second } = (await register({ ...account, username: 'bob' })).body;
    const replayed = await register({
      auth: { type: 'm.login.recaptcha', session: second, response: 'solved 1' },
    });
    assert.equal(replayed.body['errcode'], 'M_CAPTCHA_INVALID');
  });

  it('answers 502 to the solution of a CAPTCHA while the CAPTCHA service fails, or when its address is not allowed', async () => {
    await start(captchaOptions());
    const solve = async () => {
      const { session } = (await register(account)).body;
      return register({ auth: { type: 'm.login.recaptcha', session, response: 'solved 2' } });
    };
    captcha.status = 500;
    assert.equal((await solve()).status, 502);
    captcha.status = 200;
    assert.equal((await solve()).status, 401);
    await server?.stop();
    await start(captchaOptions(), {});
    const verifications = captcha.verifications.length;
    assert.equal((await solve()).status, 502);
    assert.equal(captcha.verifications.length, verifications);
  });

  it('reads the keys of the CAPTCHA from files [option: recaptcha_public_key_path, recaptcha_private_key_path]', async (context) => {
    writeFileSync(join(folder, 'public'), 'the public key\n');
    writeFileSync(join(folder, 'private'), 'the private key\n');
    const text = stringify({
      server_name: 'test',
      database: { name: 'sqlite3', args: { database: ':memory:' } },
      listeners: [
        { type: 'http', port: 0, bind_addresses: ['127.0.0.1'], resources: [{ names: ['client'] }] },
      ],
      enable_registration: true,
      enable_registration_captcha: true,
      recaptcha_public_key_path: join(folder, 'public'),
      recaptcha_private_key_path: join(folder, 'private'),
      recaptcha_siteverify_api: captcha.api,
      ip_range_whitelist: ['127.0.0.0/8'],
    });
    const configured = await startConfigured(text, folder);
    context.after(() => configured.stop());
    const send = (body: object) =>
      callApi(configured.addresses[0]!, 'POST', '/_matrix/client/v3/register', {
        body: JSON.stringify(body),
      });
    const challenge = await send(account);
    assert.deepEqual(challenge.body['params'], { 'm.login.recaptcha': { public_key: 'the public key' } });
    const auth = { type: 'm.login.recaptcha', session: challenge.body['session'], response: 'solved 3' };
    assert.deepEqual((await send({ auth })).body['completed'], ['m.login.recaptcha']);
  });

  it('never asks for a phone number when registration by phone is off, even if phone numbers are required [option: disable_msisdn_registration]', async () => {
    const flowsWith = async (disable_msisdn_registration: boolean) => {
      await start({
        enable_registration_without_verification: true,
        registrations_require_3pid: ['msisdn'],
        account_threepid_delegates: { msisdn: 'https://phones.example' },
        disable_msisdn_registration,
      });
      const { flows } = (await register(account)).body;
      await server?.stop();
      server = undefined;
      return flows;
    };
    assert.deepEqual(await flowsWith(false), [{ stages: ['m.login.msisdn'] }]);
    assert.deepEqual(await flowsWith(true), [{ stages: ['m.login.dummy'] }]);
  });

  it('requires consent to the policy, shows the policy, and stores the version that the user accepted [option: user_consent.require_at_registration, user_consent.policy_name, user_consent.version, user_consent.template_dir, form_secret, form_secret_path]', async () => {
    for (const language of ['en', 'de']) mkdirSync(join(folder, 'consent', language), { recursive: true });
    const form = '{% if not public_version %}<form method="post">{{ user }} {{ userhmac }}</form>{% endif %}';
    const write = (name: string, text: string) => writeFileSync(join(folder, 'consent', name), text);
    write('en/1.5.html', `<h1>Be kind {{ version }}</h1>${form}{% if has_consented %}agreed{% endif %}`);
    write('en/1.6.html', '<h1>Be kinder</h1>{% if has_consented %}agreed{% endif %}');
    write('en/success.html', '<h1>Thank you</h1>');
    write('de/1.5.html', '<h1>Sei nett</h1>');
    writeFileSync(join(folder, 'form secret'), 'the form secret');
    const text = `form_secret_path: ${JSON.stringify(join(folder, 'form secret'))}\nserver_name: test\n`;
    const { values } = loadConfigurationSources([{ file: 'homeserver.yaml', text }], {
      environment: {},
      directory: folder,
    });
    await start(
      {
        enable_registration_without_verification: true,
        form_secret: values.accounts.form_secret,
        user_consent: {
          template_dir: join(folder, 'consent'),
          version: '1.5',
          server_notice_content: null,
          send_server_notice_to_guests: false,
          block_events_error: null,
          require_at_registration: true,
          policy_name: 'House rules',
        },
      },
      {
        server: { server_name: 'test', public_baseurl: 'https://chat.example/' },
        http: {
          listeners: [
            {
              port: 0,
              type: 'http',
              bind_addresses: ['127.0.0.1'],
              resources: [{ names: ['client', 'consent'] }],
            },
          ],
        } as never,
      },
    );
    const challenge = await register(account);
    assert.deepEqual(challenge.body['flows'], [{ stages: ['m.login.dummy', 'm.login.terms'] }]);
    const url = 'https://chat.example/_matrix/consent?v=1.5';
    assert.deepEqual(challenge.body['params'], {
      'm.login.terms': { policies: { privacy_policy: { version: '1.5', en: { name: 'House rules', url } } } },
    });
    const { session } = challenge.body;
    assert.equal((await register({ auth: { type: 'm.login.dummy', session } })).status, 401);
    assert.equal((await register({ auth: { type: 'm.login.terms', session } })).status, 200);

    const page = async (query: string, init: RequestInit = {}) => {
      const response = await fetch(`${server!.baseUrl}/_matrix/consent${query}`, init);
      return { status: response.status, text: await response.text() };
    };
    assert.deepEqual(await page('?v=1.5'), { status: 200, text: '<h1>Be kind 1.5</h1>' });
    assert.equal((await page('')).text, '<h1>Be kind 1.5</h1>');
    assert.equal(
      (await page('', { headers: { 'accept-language': 'fr, de-CH;q=0.8' } })).text,
      '<h1>Sei nett</h1>',
    );
    const german = { headers: { 'accept-language': 'de' } };
    assert.equal(
      (await page('?v=1.6', german)).text,
      '<h1>Be kinder</h1>',
      'this version has no translation',
    );
    for (const [query, status] of [
      ['?v=9', 404],
      ['?v=..%2Fsecret', 400],
      ['?u=alice', 403],
      ['?u=alice&h=00', 403],
    ] as const) {
      assert.equal((await page(query)).status, status, query);
    }
    const h = createHmac('sha256', 'the form secret').update('alice').digest('hex');
    assert.match((await page(`?u=alice&h=${h}`)).text, new RegExp(`alice ${h}</form>agreed$`));
    assert.equal((await page(`?u=alice&h=${h}&v=1.6`)).text, '<h1>Be kinder</h1>');
    const send = (fields: Record<string, string>) =>
      page('', {
        method: 'POST',
        body: new URLSearchParams({ v: '1.6', u: 'alice', ...fields }),
        ...german,
      });
    assert.equal((await send({ h: 'guess' })).status, 403);
    assert.equal((await send({ u: 'bob', h })).status, 403);
    assert.equal((await send({ h })).text, '<h1>Thank you</h1>');
    assert.match((await page(`?u=alice&h=${h}&v=1.6`)).text, /agreed$/);
  });
});
