import assert from 'node:assert/strict';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { Browser, Page } from 'playwright-core';
import { freePort } from '../../support/network/free-port.ts';
import { type LoopbackServer, serveOnLoopback } from '../../support/network/loopback.ts';
import { startTestServer, type TestServer } from '../../support/servers/server.ts';
import { after, before, test } from '../bounded-test.ts';
import { launchChromium } from './web-page.ts';

/** Folder for screenshots of the pages, for review by developers; none are taken when it is not set. */
const pictures = process.env['HEARTH_TEST_PICTURES'];

let server: TestServer;
let client: LoopbackServer;
let browser: Browser;
const errors: string[] = [];

before(async () => {
  const port = await freePort();
  const listener = { port, type: 'http', bind_addresses: ['127.0.0.1'], resources: [{ names: ['client'] }] };
  server = await startTestServer({
    database: 'sqlite',
    config: {
      http: { listeners: [listener] } as never,
      oauth: { oauth2: { enabled: true } },
      server: { server_name: 'test', public_baseurl: `http://127.0.0.1:${port}/` },
    },
  });
  await server.register('alice');
  const { outputFiles } = await build({
    entryPoints: [new URL('oauth-page.js', import.meta.url).pathname],
    bundle: true,
    format: 'esm',
    write: false,
    define: { global: 'globalThis' },
    logLevel: 'error',
  });
  const page = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.js"></script>';
  client = await serveOnLoopback((request, response) => {
    const isScript = request.url === '/page.js';
    response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' });
    response.end(isScript ? outputFiles[0]!.contents : page);
  });
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await client?.close();
  await server?.stop();
});

/** Begins a login on a device without a browser. @returns the code that the device shows */
async function beginLoginOnDevice(): Promise<string> {
  const oauth = `${server.baseUrl}/_synapse/client/oauth2`;
  const client = {
    client_name: 'Television',
    client_uri: 'https://app.example/',
    grant_types: ['refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  };
  const registered = await fetch(`${oauth}/registration`, { method: 'POST', body: JSON.stringify(client) });
  const { client_id = '' } = (await registered.json()) as Record<string, string>;
  const scope = 'urn:matrix:client:api:* urn:matrix:client:device:TELEVISION';
  const begun = await fetch(`${oauth}/device`, {
    method: 'POST',
    body: new URLSearchParams({ client_id, scope }),
  });
  const { user_code = '' } = (await begun.json()) as Record<string, string>;
  return user_code;
}

/** Logs in with a password. */
async function logIn(): Promise<{ token: string; deviceId: string }> {
  const body = { type: 'm.login.password', user: 'alice', password: 'correct horse' };
  const answer = await server.api('POST', '/_matrix/client/v3/login', { body });
  return { token: String(answer.body['access_token']), deviceId: String(answer.body['device_id']) };
}

let pictureNumber = 0;

/** Checks what each page needs for keyboards and screen readers, and takes pictures of it. */
async function checkView(page: Page, name: string): Promise<void> {
  assert.equal(await page.locator('html').getAttribute('lang'), 'en');
  assert.equal(await page.locator('h1').count(), 1);
  for (const field of await page.locator('input:not([type=hidden])').all()) {
    const labels = await field.evaluate(
      (element) => (element as unknown as { labels?: ArrayLike<object> }).labels?.length,
    );
    assert.ok(labels, `a field of the page ${name} has no label`);
  }
  const width = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
  assert.ok(width <= 0, `the page ${name} is wider than the window`);
  if (pictures === undefined) return;
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const path = join(pictures, `oauth-${pictureNumber}-${name}-${colorScheme}.png`);
    await page.screenshot({ path, fullPage: true });
  }
  pictureNumber += 1;
}

test('matrix-js-sdk logs in by OAuth 2.0 in a browser, whose user manages the account afterwards', async () => {
  const page = await browser.newPage({ viewport: { width: 400, height: 800 } });
  page.setDefaultTimeout(60_000);
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of 40[13]/.test(message.text())) errors.push(message.text());
  });
  const origin = `http://127.0.0.1:${client.port}`;
  await page.goto(origin);
  await page.waitForFunction("typeof window.begin === 'function'");
  await page.evaluate(`void window.begin('${server.baseUrl}')`);

  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await checkView(page, 'sign-in');
  await page.getByLabel('User name or mail address').fill('alice');
  await page.getByLabel('Password').fill('wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Password').fill('correct horse');
  await page.keyboard.press('Enter');

  await page.getByRole('heading', { name: 'Allow access to your account?' }).waitFor();
  await checkView(page, 'consent');
  await page.getByRole('button', { name: 'Allow', exact: true }).click();
  await page.waitForURL(`${origin}/back#**`);
  assert.equal(await page.evaluate('document.referrer'), '', 'the client does not learn the URL of a page');
  await page.waitForFunction("typeof window.complete === 'function'");
  const result = (await page.evaluate('window.complete()')) as Record<string, unknown>;
  const session = { user_id: '@alice:test', device_id: result['deviceId'], is_guest: false };
  assert.deepEqual(result, {
    state: 'the state',
    deviceId: result['deviceId'],
    whoamiAfterLogin: session,
    whoamiAfterRefresh: session,
    errcodeAfterRevocation: 'M_UNKNOWN_TOKEN',
  });

  await page.goto(`${server.baseUrl}/_synapse/client/account`);
  await checkView(page, 'account');
  await page.getByLabel('Name that others see').fill('Alice');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('status').filter({ hasText: 'Your name has been changed' }).waitFor();
  await page.getByRole('link', { name: 'Your sessions' }).click();
  await checkView(page, 'sessions');
  await page.locator('section.device a').first().click();
  await checkView(page, 'session');
  await page.getByRole('button', { name: 'End this session' }).click();
  await page.getByRole('status').filter({ hasText: 'The session has ended' }).waitFor();
  await page.goto(`${server.baseUrl}/_synapse/client/oauth2/link`);
  await checkView(page, 'link');
  await page.getByLabel('Code').fill('ABCD-EFGH');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Code').fill((await beginLoginOnDevice()).toLowerCase());
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('heading', { name: 'Sign in this device?' }).waitFor();
  await checkView(page, 'device');
  await page.getByRole('button', { name: 'Sign in the device' }).click();
  await page.getByRole('status').filter({ hasText: 'Continue on the device' }).waitFor();
  await checkView(page, 'device-done');

  const open = (action: string, device = '') =>
    page.goto(
      `${server.baseUrl}/_synapse/client/account?action=${action}${device && `&device_id=${device}`}`,
    );
  const { token, deviceId } = await logIn();
  await open('org.matrix.profile');
  await page.getByRole('heading', { name: 'Your account' }).waitFor();
  await open('org.matrix.devices_list');
  await page.getByRole('link', { name: deviceId }).waitFor();
  await open('org.matrix.device_view', deviceId);
  await page.getByText(`Device ${deviceId}`).waitFor();
  await open('org.matrix.device_delete', deviceId);
  await page.getByRole('button', { name: 'End this session' }).click();
  await page.getByRole('status').filter({ hasText: 'The session has ended' }).waitFor();
  assert.equal((await server.api('GET', '/_matrix/client/v3/account/whoami', { token })).status, 401);
  await open('org.matrix.cross_signing_reset');
  await checkView(page, 'cross_signing_reset');
  await page.getByRole('button', { name: 'Allow the reset' }).click();
  await page.getByRole('status').filter({ hasText: 'Go back to the app' }).waitFor();
  await open('org.matrix.account_deactivate');
  await checkView(page, 'account_deactivate');
  await page.getByLabel('To confirm, enter @alice:test').fill('@alice:test');
  await page.getByRole('button', { name: 'Deactivate for ever' }).click();
  await page.getByRole('heading', { name: /deactivated/ }).waitFor();
  await checkView(page, 'deactivated');
  await open('org.matrix.profile');
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  // The SDK logs that a revoked token cannot be refreshed; the unknown code is answered 404.
  const unexpected = errors.filter((error) => !/status of 404|Unable to refresh token/.test(error));
  assert.deepEqual(unexpected, []);
  await page.close();
});
