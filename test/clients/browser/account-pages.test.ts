import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { linkIn, ServerWithMail } from '../../../src/third-party-ids/test/server-with-mail.ts';
import { CaptchaService } from '../../support/other-servers/captcha-service.ts';
import { startTestServer } from '../../support/servers/server.ts';
import { registerAdmin } from '../../support/users/register-admin.ts';
import { TestClient } from '../../support/users/test-client.ts';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { launchChromium } from './web-page.ts';

/** Folder for screenshots of the pages, for review by developers; none are taken when it is not set. */
const pictures = process.env['HEARTH_TEST_PICTURES'];

let captcha: CaptchaService;
let homeserver: ServerWithMail;
let browser: Browser;
const folder = mkdtempSync(join(tmpdir(), 'hearth-account-pages-'));

before(async () => {
  captcha = await CaptchaService.start();
  homeserver = await ServerWithMail.start('sqlite', {
    enable_registration_without_verification: false,
    registration_requires_token: true,
    enable_registration_captcha: true,
    recaptcha_public_key: 'the public key',
    recaptcha_private_key: 'the private key',
    recaptcha_siteverify_api: captcha.api,
    registrations_require_3pid: ['email'],
    user_consent: {
      template_dir: folder,
      version: '1.0',
      server_notice_content: null,
      send_server_notice_to_guests: false,
      block_events_error: null,
      require_at_registration: true,
      policy_name: 'House rules',
    },
  });
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await homeserver?.stop();
  await captcha?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens a page and collects its errors, for instance exceptions of scripts and violations of the content security policy. */
async function openWindow(context: BrowserContext): Promise<{ page: Page; errors: string[] }> {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of 40[013]/.test(message.text())) errors.push(message.text());
  });
  return { page, errors };
}

let pictureNumber = 0;

/** Checks what each page needs for keyboards and screen readers, and takes pictures of it. */
async function checkView(page: Page, name: string): Promise<void> {
  assert.equal(await page.locator('html').getAttribute('lang'), 'en');
  assert.notEqual(await page.title(), '');
  assert.equal(await page.locator('h1').count(), 1);
  for (const field of await page.locator('input:not([type=hidden]), textarea:visible').all()) {
    const label = await field.evaluate((element) => {
      const { labels } = element as { labels?: ArrayLike<{ readonly textContent: string }> };
      return labels?.[0]?.textContent;
    });
    assert.ok(label, `a field of the page ${name} has no label`);
  }
  const width = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
  assert.ok(width <= 0, `the page ${name} is wider than the window`);
  if (pictures === undefined) return;
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(pictures, `${pictureNumber}-${name}-${colorScheme}.png`) });
  }
  pictureNumber += 1;
}

const url = (path: string) => homeserver.server.baseUrl + path;

test('a user registers in a browser with a token, a CAPTCHA, a mail address and terms, and logs in', async () => {
  const admin = await registerAdmin(homeserver.server);
  const created = await homeserver.server.api('POST', '/_synapse/admin/v1/registration_tokens/new', {
    token: admin.token,
    body: { token: 'welcome', uses_allowed: 1 },
  });
  assert.equal(created.status, 200, created.raw);
  const context = await browser.newContext({ viewport: { width: 400, height: 800 } });
  const { page, errors } = await openWindow(context);

  await page.goto(url('/_synapse/client/register?token=welcome'));
  await checkView(page, 'register');
  await page.getByLabel('User name').fill('Not good');
  await page.getByLabel('Password', { exact: true }).fill('correct horse');
  await page.getByLabel('Password again').fill('correct horse');
  await page.getByRole('button', { name: 'Create the account' }).click();
  await page.getByRole('alert').waitFor();
  await checkView(page, 'register-refused');
  assert.equal(await page.getByLabel('User name').getAttribute('aria-invalid'), 'true');
  assert.equal(await page.getByLabel('Registration token').inputValue(), 'welcome');

  // The form is filled in and sent with the keyboard only.
  await page.getByLabel('User name').fill('alice');
  await page.keyboard.press('Tab');
  await page.keyboard.type('correct horse');
  await page.keyboard.press('Tab');
  await page.keyboard.type('correct horse');
  await page.keyboard.press('Enter');

  await page.getByRole('heading', { name: 'Are you a person?' }).waitFor();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('alert').filter({ hasText: 'Solve the CAPTCHA' }).waitFor();
  await page.getByLabel('I am a person').check();
  await checkView(page, 'captcha');
  await page.getByRole('button', { name: 'Continue' }).click();

  await page.getByLabel('Mail address').fill('Alice@Example.org');
  await checkView(page, 'mail');
  const number = homeserver.mailServer.received.length;
  await page.getByRole('button', { name: 'Send the mail' }).click();
  await page.getByRole('status').waitFor();
  await checkView(page, 'mail-sent');
  await page.getByRole('button', { name: 'I have opened the link' }).click();
  await page.getByRole('alert').filter({ hasText: 'has not been validated' }).waitFor();
  const { pathname, search } = new URL(linkIn(await homeserver.mailServer.mail(number)));
  const confirmation = await openWindow(context);
  await confirmation.page.goto(url(pathname + search));
  await confirmation.page.getByRole('heading', { name: 'Your address is confirmed' }).waitFor();
  await confirmation.page.close();
  await page.getByRole('button', { name: 'I have opened the link' }).click();

  await page.getByRole('heading', { name: 'House rules' }).waitFor();
  await page.getByLabel('I have read it').check();
  await checkView(page, 'terms');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('@alice:test').waitFor();
  await checkView(page, 'registered');

  await page.addInitScript('window.matrixLogin = { onLogin: (response) => (window.response = response) };');
  await page.goto(url('/_matrix/static/client/login/?device_id=PHONE'));
  await page.getByLabel('User name or mail address').fill('alice@example.org');
  await page.getByLabel('Password').fill('wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await checkView(page, 'login');
  await page.getByLabel('Password').fill('correct horse');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('status').waitFor();
  const response = (await page.evaluate('window.response')) as Record<string, string>;
  assert.deepEqual([response['user_id'], response['device_id']], ['@alice:test', 'PHONE']);
  assert.deepEqual([...errors, ...confirmation.errors], []);
  await context.close();
});

test('the fallback page of an authentication stage reports the completion to the client that opened it', async () => {
  const challenge = await homeserver.post('/register', { username: 'bob', password: 'correct horse' });
  const session = String(challenge.body['session']);
  const context = await browser.newContext();
  const client = await openWindow(context);
  await client.page.goto(url('/_matrix/static/client/login/'));
  const fallback = url(`/_matrix/client/v3/auth/m.login.terms/fallback/web?session=${session}`);
  const [popup] = await Promise.all([
    context.waitForEvent('page'),
    client.page.evaluate(
      `addEventListener('message', ({ data }) => (window.received = data)); void window.open('${fallback}');`,
    ),
  ]);
  await popup.getByLabel('I have read it').check();
  await popup.getByRole('button', { name: 'Continue' }).click();
  await popup.getByRole('status').waitFor();
  await checkView(popup, 'stage-completed');
  await client.page.waitForFunction("window.received === 'authDone'");
  const { body } = await homeserver.post('/register', { auth: { session } });
  assert.deepEqual(body['completed'], ['m.login.terms']);
  await context.close();
});

test('the page of an unknown authentication session and a wide registration page have labels and fit the window', async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const { page } = await openWindow(context);
  await page.goto(url('/_matrix/client/v3/auth/m.login.terms/fallback/web?session=unknown'));
  await page.getByRole('alert').filter({ hasText: 'Unknown authentication session' }).waitFor();
  await checkView(page, 'failure');
  await page.goto(url('/_synapse/client/register'));
  await checkView(page, 'register-wide');
  await context.close();
});

/** Returns the template of a policy page, with the form and the values that templates of the reference server have. */
const policy = (title: string, button: string, done: string) => `{% extends "_base.html" %}
{% block title %}${title}{% endblock %}
{% block body %}<h1>${title} {{ version }}</h1>
{% if public_version %}<p>public</p>{% elif has_consented %}<p>${done}</p>{% else %}
<form method="post" action="consent">
<input type="hidden" name="v" value="{{ version }}"><input type="hidden" name="u" value="{{ user }}">
<input type="hidden" name="h" value="{{ userhmac }}"><button>${button}</button></form>{% endif %}{% endblock %}`;

test('a user opens the link of a server notice, agrees to the policy in the language of the browser, and can create rooms afterwards', async () => {
  const success = '{% extends "_base.html" %}{% block title %}OK{% endblock %}{% block body %}<h1>';
  for (const [language, text, thanks] of [
    ['en', policy('House rules', 'I agree', 'You have agreed'), 'Thank you'],
    ['de', policy('Hausordnung', 'Ich stimme zu', 'Zugestimmt'), 'Danke'],
  ] as const) {
    mkdirSync(join(folder, language), { recursive: true });
    writeFileSync(join(folder, language, '2.0.html'), text);
    writeFileSync(join(folder, language, 'success.html'), `${success}${thanks}</h1>{% endblock %}`);
  }
  const listener = { port: 0, type: 'http', bind_addresses: ['127.0.0.1'] };
  const server = await startTestServer({
    database: 'sqlite',
    config: {
      server: { public_baseurl: 'https://chat.example/' },
      http: { listeners: [{ ...listener, resources: [{ names: ['client', 'consent'] }] }] } as never,
      serverNotices: { server_notices: { system_mxid_localpart: 'notices', auto_join: true } },
      accounts: {
        form_secret: 'secret',
        user_consent: {
          template_dir: folder,
          version: '2.0',
          server_notice_content: { msgtype: 'm.text', body: 'Please read %(consent_uri)s' },
          block_events_error: 'Please agree first: %(consent_uri)s',
        } as never,
      },
    },
  });
  try {
    const anna = await TestClient.register(server, 'anna');
    assert.equal((await anna.call('POST', '/createRoom', {})).body['errcode'], 'M_CONSENT_NOT_GIVEN');
    const link = await eventually('the notice', async () => {
      const joined = Object.values((await anna.sync()).rooms?.join ?? {});
      const bodies = joined.flatMap(({ timeline }) => timeline.events.map(({ content }) => content['body']));
      return /https:\S+/.exec(bodies.join(' '))?.[0];
    });
    const { pathname, search } = new URL(link);

    const context = await browser.newContext({ locale: 'de-DE', viewport: { width: 400, height: 800 } });
    const { page, errors } = await openWindow(context);
    await page.goto(server.baseUrl + pathname + search);
    assert.equal(await page.getByRole('heading').textContent(), 'Hausordnung 2.0');
    await checkView(page, 'consent');
    await page.getByRole('button', { name: 'Ich stimme zu' }).click();
    await page.getByRole('heading', { name: 'Danke' }).waitFor();
    await page.goto(server.baseUrl + pathname + search);
    await page.getByText('Zugestimmt').waitFor();
    assert.equal(await page.getByRole('button').count(), 0);
    assert.deepEqual(errors, []);
    await page.goto(`${server.baseUrl}${pathname}?u=anna&h=00`);
    await page.getByText('The link is not valid').waitFor();
    await context.close();
    const french = await browser.newContext({ locale: 'fr-FR' });
    // There is no French text, so the English one is shown.
    const withoutUser = await openWindow(french);
    await withoutUser.page.goto(server.baseUrl + pathname);
    await withoutUser.page.getByText('public').waitFor();
    assert.equal(await withoutUser.page.getByRole('heading').textContent(), 'House rules 2.0');
    await french.close();
    await anna.createRoom();
  } finally {
    await server.stop();
  }
});
