/** Logins with SAML in Chromium, at the identity provider SimpleSAMLphp. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { rsaCertificate, SamlIdp } from '../../../src/sso/test/saml-idp.ts';
import { ssoOptions } from '../../../src/sso/test/sso-server.ts';
import { freePort } from '../../support/network/free-port.ts';
import { makeTestAuthority } from '../../support/network/test-authority.ts';
import { startTestServer, type TestServer } from '../../support/servers/server.ts';
import { after, before, test } from '../bounded-test.ts';
import { desktopViewport, PageReview } from './page-review.ts';
import { SimpleSamlPhp } from './simplesamlphp.ts';
import { launchChromium } from './web-page.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-saml-browser-'));
const authority = makeTestAuthority();
/** Writes a file. @returns its path */
const write = (name: string, content: string) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};

let idp: SimpleSamlPhp;
let server: TestServer;
let base: string;
let browser: Browser;
let page: Page;
let review: PageReview;
/** The responses of the identity provider, as XML. */
const responses: string[] = [];

before(async () => {
  idp = await SimpleSamlPhp.start();
  const port = await freePort();
  base = `https://127.0.0.1:${port}`;
  const { key, cert } = authority.issue('127.0.0.1');
  const service = rsaCertificate('third');
  const listener = { type: 'http', bind_addresses: ['127.0.0.1'], resources: [{ names: ['client'] }] };
  server = await startTestServer({
    database: 'sqlite',
    config: {
      http: {
        tls_certificate_path: write('tls.pem', cert),
        tls_private_key_path: write('tls.key', key),
        listeners: [
          { ...listener, port: 0 },
          { ...listener, port, tls: true },
        ],
      } as never,
      server: { server_name: 'test', public_baseurl: `${base}/` },
      sso: ssoOptions({
        saml2_config: {
          idp_name: 'Example University',
          sp_config: {
            metadata: {
              remote: [{ url: `${idp.entityId}` }],
              local: [write('other.xml', new SamlIdp('https://other.client.example').metadata)],
            },
            key_file: write('sp.key', service.key),
            cert_file: write('sp.pem', service.cert),
            service: { sp: { allow_unsolicited: true } },
          },
          user_mapping_provider: { config: { mxid_source_attribute: 'uid' } },
        },
      }),
    },
  });
  browser = await launchChromium();
  const context = await browser.newContext({ viewport: desktopViewport, ignoreHTTPSErrors: true });
  page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on('request', (request) => {
    const response = new URLSearchParams(request.postData() ?? '').get('SAMLResponse');
    if (response !== null) responses.push(Buffer.from(response, 'base64').toString());
  });
  review = new PageReview(page, 'saml');
  idp.trust(await serviceMetadata(), { signsResponse: true, signsAssertion: true, encrypts: false });
});
after(async () => {
  await browser?.close();
  await server?.stop();
  await idp?.stop();
  authority.remove();
  rmSync(folder, { recursive: true, force: true });
});

const collegeLink = () => page.getByRole('link', { name: 'Example College' });

const serviceMetadata = async () =>
  (await fetch(`${server.baseUrl}/_synapse/client/saml2/metadata.xml`)).text();
const appUrl = 'http://127.0.0.1:9/back';
const redirectUrl = () =>
  `${base}/_matrix/client/v3/login/sso/redirect/saml?redirectUrl=${encodeURIComponent(appUrl)}`;

/** Enters the password of the user at SimpleSAMLphp. */
async function enterPassword(): Promise<void> {
  await page.locator('input[name=username]').fill('ada');
  await page.locator('input[name=password]').fill('lovelace');
  await page.keyboard.press('Enter');
}

/** Waits for the page that asks whether to continue to the app, and logs in with its login token. @returns the response */
async function loginByPage(): Promise<Record<string, unknown>> {
  const href = await page.getByRole('link', { name: /^Continue to / }).getAttribute('href');
  const token = new URL(String(href)).searchParams.get('loginToken');
  const body = { type: 'm.login.token', token };
  const answer = await server.api('POST', '/_matrix/client/v3/login', { body });
  assert.equal(answer.status, 200, answer.raw);
  return answer.body;
}

test('a user who chooses SimpleSAMLphp, which knows this server by its metadata, from several identity providers is registered', async () => {
  await page.goto(redirectUrl());
  await page.getByRole('heading', { level: 1 }).waitFor();
  await review.checkView('identity-providers');
  await collegeLink().press('Enter');
  await enterPassword();
  const { user_id: userId } = await loginByPage();
  assert.equal(userId, '@ada:test');
  await review.checkView('account-ready');
  const { body } = await server.api('GET', '/_matrix/client/v3/profile/@ada:test/displayname');
  assert.equal(body['displayname'], 'Ada Lovelace');
});

test('logins succeed when SimpleSAMLphp signs only the response, only the assertion, or encrypts the assertion', async () => {
  const metadata = (await serviceMetadata()).replace(' WantAssertionsSigned="true"', '');
  for (const [signsResponse, signsAssertion, encrypts] of [
    [true, false, false],
    [false, true, false],
    [true, false, true],
    [false, true, true],
  ] as const) {
    idp.trust(metadata, { signsResponse, signsAssertion, encrypts });
    // The user is still signed in at the identity provider, which asks for no password.
    await page.goto(redirectUrl());
    await collegeLink().click();
    assert.equal((await loginByPage())['user_id'], '@ada:test');
    const [envelope = '', assertion = ''] = (responses.at(-1) ?? '').split('<samlp:Status>');
    assert.deepEqual(
      [envelope.includes('<ds:Signature'), assertion.includes('<saml:EncryptedAssertion')],
      [signsResponse, encrypts],
      envelope,
    );
    if (!encrypts) assert.equal(assertion.includes('<ds:Signature'), signsAssertion);
  }
});

test('a login that begins at SimpleSAMLphp leads to the app', async () => {
  await page.goto(idp.unsolicitedUrl(`${base}/_synapse/client/saml2/metadata.xml`, appUrl));
  assert.equal((await loginByPage())['user_id'], '@ada:test');
});

test('to confirm an action, the user enters the password at SimpleSAMLphp again', async () => {
  await page.goto(redirectUrl());
  await collegeLink().click();
  const { access_token: token, device_id: device } = await loginByPage();
  const remove = (auth?: object) =>
    server.api('DELETE', `/_matrix/client/v3/devices/${String(device)}`, {
      token: String(token),
      body: auth ? { auth } : {},
    });
  const { session: sessionId } = (await remove()).body;
  await page.goto(`${base}/_matrix/client/v3/auth/m.login.sso/fallback/web?session=${String(sessionId)}`);
  await page.getByRole('link', { name: /^Continue/ }).click();
  await collegeLink().click();
  assert.equal((await remove({ session: sessionId })).status, 401);
  await enterPassword();
  await page.waitForURL(`${base}/**`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await review.checkView('confirmed');
  assert.equal((await remove({ session: sessionId })).status, 200);
});
