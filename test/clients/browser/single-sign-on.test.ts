import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { OidcServer } from '../../../src/sso/test/oidc-server.ts';
import { ssoOptions } from '../../../src/sso/test/sso-server.ts';
import { freePort } from '../../support/network/free-port.ts';
import { type LoopbackServer, serveOnLoopback } from '../../support/network/loopback.ts';
import { startTestServer, type TestServer } from '../../support/servers/server.ts';
import { after, before, test } from '../bounded-test.ts';
import { desktopViewport, PageReview } from './page-review.ts';
import { launchChromium } from './web-page.ts';

let server: TestServer;
let provider: OidcServer;
let client: LoopbackServer;
let browser: Browser;
let page: Page;
let review: PageReview;
/** Errors in the browser: scripts that fail, requests to other hosts, violations of the content security policy. */
const errors: string[] = [];

before(async () => {
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  provider = await OidcServer.start(() => [
    {
      client_id: 'hearth',
      client_secret: 'a secret',
      redirect_uris: [`${base}/_synapse/client/oidc/callback`],
    },
  ]);
  const providerConfig = (idp_id: string, idp_name: string) => ({
    idp_id,
    idp_name,
    issuer: provider.issuer,
    client_id: 'hearth',
    client_secret: 'a secret',
    skip_verification: true,
    user_mapping_provider: {
      config: { display_name_template: '{{ user.name }}', email_template: '{{ user.email }}' },
    },
  });
  const listener = { port, type: 'http', bind_addresses: ['127.0.0.1'], resources: [{ names: ['client'] }] };
  server = await startTestServer({
    database: 'sqlite',
    config: {
      http: { listeners: [listener] } as never,
      server: { server_name: 'test', public_baseurl: `${base}/` },
      accounts: { user_consent: { version: '1.0', require_at_registration: true } } as never,
      sso: ssoOptions({
        oidc_providers: [
          providerConfig('work', 'Example Company'),
          providerConfig('school', 'Example School'),
        ],
      }),
    },
  });
  const account = { username: 'taken', password: 'a password of the tests' };
  const postRegister = (body: object) => server.api('POST', '/_matrix/client/v3/register', { body });
  const { session: registration } = (await postRegister(account)).body;
  for (const type of ['m.login.dummy', 'm.login.terms']) {
    await postRegister({ ...account, auth: { type, session: registration } });
  }
  client = await serveOnLoopback((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(
      '<!doctype html><html lang="en"><title>App</title><link rel="icon" href="data:,"><h1>App</h1>',
    );
  });
  browser = await launchChromium();
  const context = await browser.newContext({ viewport: desktopViewport });
  page = await context.newPage();
  page.setDefaultTimeout(60_000);
  review = new PageReview(page, 'sso');
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of 40[0134]/.test(message.text())) errors.push(message.text());
  });
});
after(async () => {
  await browser?.close();
  await client?.close();
  await server?.stop();
  await provider?.stop();
});

const checkView = (name: string) => review.checkView(name);
const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
const button = (name: string | RegExp) => page.getByRole('button', { name });
/** Accepts the terms by keyboard, and waits until the account is created. */
async function acceptTerms(): Promise<void> {
  await heading('Terms');
  // The checkbox has the focus.
  await page.keyboard.press('Space');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await heading('Your account is ready');
}

const backUrl = () => `http://127.0.0.1:${client.port}/back`;
const redirectUrl = (path = '') =>
  `${server.baseUrl}/_matrix/client/v3/login/sso/redirect${path}?redirectUrl=${encodeURIComponent(backUrl())}`;

/** Waits until the browser is back at the app, and exchanges the login token in its URL. */
async function session(): Promise<Record<string, unknown>> {
  await page.waitForURL(`${backUrl()}?loginToken=**`);
  const token = new URL(page.url()).searchParams.get('loginToken');
  const body = { type: 'm.login.token', token };
  const answer = await server.api('POST', '/_matrix/client/v3/login', { body });
  assert.equal(answer.status, 200, answer.raw);
  return answer.body;
}

test('a new user signs in by keyboard: chooses a provider and a user name, and allows the app', async () => {
  provider.user = { sub: 'a1', name: 'Anna Ambers', email: 'anna@example.org' };
  await page.goto(redirectUrl());
  await heading('Sign in');
  await checkView('providers');
  // The first provider has the focus; the second one is chosen.
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await heading('Choose your user name');
  await checkView('user-name');
  await page.getByLabel('User name').fill('taken');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  await checkView('user-name-taken');
  assert.equal(await page.getByLabel('User name').getAttribute('aria-invalid'), 'true');
  await page.getByLabel('User name').fill('anna');
  await page.getByLabel('Mail address: anna@example.org').uncheck();
  await button('Continue').click();
  await heading('Terms');
  await checkView('terms');
  assert.equal(
    (await server.api('GET', '/_matrix/client/v3/profile/@anna:test')).status,
    404,
    'no account without consent',
  );
  await acceptTerms();
  await checkView('account-ready');
  await page.keyboard.press('Tab');
  await page.getByRole('link', { name: /^Continue to / }).click();
  const { user_id: userId } = await session();
  assert.equal(userId, '@anna:test');
  const profile = await server.api(
    'GET',
    `/_matrix/client/v3/profile/${encodeURIComponent('@anna:test')}/displayname`,
  );
  assert.equal(profile.body['displayname'], 'Anna Ambers');
});

test('a user who has an account signs in again with one click, and the app receives another session', async () => {
  provider.user = { sub: 'a1', name: 'Anna Ambers', email: 'anna@example.org' };
  await page.goto(redirectUrl('/oidc-school'));
  await heading('Continue to your app');
  await checkView('continue');
  await page.getByRole('link', { name: /^Continue to / }).click();
  assert.equal((await session())['user_id'], '@anna:test');
});

test('a user who refuses at the provider sees a page that says so, and no app receives a token', async () => {
  provider.user = undefined;
  // Without cookies the provider asks who the user is.
  await page.context().clearCookies();
  await page.goto(redirectUrl('/oidc-work'));
  await heading('Signing in did not work');
  await page.getByRole('alert').filter({ hasText: 'refused' }).waitFor();
  await checkView('refused');
  assert.doesNotMatch(page.url(), /loginToken/);
  assert.equal(await page.locator('b').count(), 0, 'markup of the provider is shown as text');
});

test('a user confirms the deletion of a session by signing in again, and another user cannot', async () => {
  await page.context().clearCookies();
  provider.user = { sub: 'b2', name: 'Other' };
  await page.goto(redirectUrl('/oidc-school'));
  await page.getByLabel('User name').fill('other');
  await page.keyboard.press('Enter');
  await acceptTerms();

  await page.context().clearCookies();
  provider.user = { sub: 'a1', name: 'Anna Ambers' };
  const signIn = async () => {
    await page.goto(redirectUrl('/oidc-school'));
    await page.getByRole('link', { name: /^Continue to / }).click();
    return session();
  };
  const { access_token: token } = await signIn();
  const { device_id: otherDevice } = await signIn();
  const path = `/_matrix/client/v3/devices/${String(otherDevice)}`;
  const remove = (auth?: object) =>
    server.api('DELETE', path, { token: String(token), body: auth ? { auth } : {} });
  const { body } = await remove();
  const fallback = `${server.baseUrl}/_matrix/client/v3/auth/m.login.sso/fallback/web?session=${String(body['session'])}`;

  provider.user = { sub: 'b2', name: 'Other' };
  await page.goto(fallback);
  await heading('Confirm that it is you');
  await checkView('confirm');
  await page.getByRole('link', { name: /^Continue/ }).click();
  await heading('Wrong account');
  await checkView('other-user');
  assert.equal((await remove({ session: body['session'] })).status, 401);

  provider.user = { sub: 'a1', name: 'Anna Ambers' };
  await page.goto(fallback);
  await page.getByRole('link', { name: /^Continue/ }).click();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await checkView('confirmed');
  assert.equal((await remove({ session: body['session'] })).status, 200);
});

test('no page of single sign-on violates its content security policy or requests anything from another host', () => {
  assert.deepEqual(errors, []);
});
