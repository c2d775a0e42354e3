/** Logins with CAS in Chromium, at the CAS server of django-cas-server. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { ssoOptions } from '../../../src/sso/test/sso-server.ts';
import { freePort } from '../../support/network/free-port.ts';
import { startTestServer, type TestServer } from '../../support/servers/server.ts';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { launchChromium } from './web-page.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-cas-'));
const appUrl = 'http://127.0.0.1:9/back';

let cas: ChildProcess;
let casUrl: string;
/** Servers with the values 1, 2 and 3 of the option `protocol_version`. */
let servers: TestServer[];
let browser: Browser;
let page: Page;

before(async () => {
  const casPort = await freePort();
  casUrl = `http://localhost:${casPort}`;
  const script = join(import.meta.dirname, 'django-cas-server.py');
  cas = spawn('/usr/bin/python3', [script, String(casPort), 'http://127.0.0.1:', folder], {
    stdio: 'inherit',
  });
  servers = await Promise.all([1, 2, 3].map(start));
  browser = await launchChromium();
  page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  await eventually('the CAS server', async () => {
    const answer = await fetch(`${casUrl}/login`).catch(() => undefined);
    return answer?.status === 200;
  });
});
after(async () => {
  await browser?.close();
  await Promise.all(servers?.map((server) => server.stop()) ?? []);
  if (cas?.kill()) await once(cas, 'exit');
  rmSync(folder, { recursive: true, force: true });
});

async function start(version: number): Promise<TestServer> {
  const port = await freePort();
  const listener = { port, type: 'http', bind_addresses: ['127.0.0.1'], resources: [{ names: ['client'] }] };
  const attributes = { displayname_attribute: 'fullName', required_attributes: { groups: 'staff' } };
  return startTestServer({
    database: 'sqlite',
    config: {
      http: { listeners: [listener] } as never,
      server: { server_name: 'test', public_baseurl: `http://127.0.0.1:${port}/` },
      sso: ssoOptions({
        cas_config: {
          enabled: true,
          server_url: casUrl,
          protocol_version: version,
          ...(version === 3 && attributes),
        },
      }),
    },
  });
}

const redirectUrl = ({ baseUrl }: TestServer) =>
  `${baseUrl}/_matrix/client/v3/login/sso/redirect/cas?redirectUrl=${encodeURIComponent(appUrl)}`;

/** Waits for the page that asks whether to continue to the app, and logs in with its login token. @returns the session */
async function session(server: TestServer): Promise<Record<string, unknown>> {
  const href = await page.getByRole('link', { name: /^Continue to / }).getAttribute('href');
  const token = new URL(String(href)).searchParams.get('loginToken');
  const answer = await server.api('POST', '/_matrix/client/v3/login', {
    body: { type: 'm.login.token', token },
  });
  assert.equal(answer.status, 200, answer.raw);
  return answer.body;
}

async function enterPassword(): Promise<void> {
  await page.locator('input[name=username]').fill('grace');
  await page.locator('input[name=password]').fill('hopper');
  await page.locator('input[name=password]').press('Enter');
}

test('a user logs in with versions 3, 2 and 1 of the CAS protocol, and enters the password once', async () => {
  const [version1, version2, version3] = servers as [TestServer, TestServer, TestServer];
  await page.goto(redirectUrl(version3));
  await enterPassword();
  for (const server of [version3, version2, version1]) {
    if (server !== version3) await page.goto(redirectUrl(server));
    assert.equal((await session(server))['user_id'], '@grace:test');
  }
  const nameAt = async (server: TestServer) =>
    (await server.api('GET', '/_matrix/client/v3/profile/@grace:test/displayname')).body['displayname'];
  assert.equal(await nameAt(version3), 'Grace Hopper');
  assert.equal(await nameAt(version1), 'grace', 'version 1 has no attributes');
});

test('to confirm an action, the user enters the password at the CAS server again', async () => {
  for (const server of servers) {
    await page.goto(redirectUrl(server));
    const { access_token: token, device_id: device } = await session(server);
    const remove = (auth?: object) =>
      server.api('DELETE', `/_matrix/client/v3/devices/${String(device)}`, {
        token: String(token),
        body: auth ? { auth } : {},
      });
    const { session: sessionId } = (await remove()).body;
    await page.goto(
      `${server.baseUrl}/_matrix/client/v3/auth/m.login.sso/fallback/web?session=${String(sessionId)}`,
    );
    await page.getByRole('link', { name: /^Continue/ }).click();
    await page.waitForURL(`${casUrl}/**`);
    assert.equal((await remove({ session: sessionId })).status, 401);
    await enterPassword();
    await page.waitForURL(`${server.baseUrl}/**`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    assert.equal((await remove({ session: sessionId })).status, 200);
  }
});
