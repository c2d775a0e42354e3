import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { openDatabase } from '../../../src/kernel/database/index.ts';
import { silentLogger } from '../../../src/kernel/observability/index.ts';
import { CasServer } from '../../../src/sso/test/cas-server.ts';
import { ssoOptions } from '../../../src/sso/test/sso-server.ts';
import { freePort } from '../../support/network/free-port.ts';
import { startTestServer, type TestServer } from '../../support/servers/server.ts';
import { registerAdmin } from '../../support/users/register-admin.ts';
import { TestClient } from '../../support/users/test-client.ts';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { launchChromium } from './web-page.ts';

/** Folder for screenshots of the pages, for review by developers; none are taken when it is not set. */
const pictures = process.env['HEARTH_TEST_PICTURES'];

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let server: TestServer;
let cas: CasServer;
let browser: Browser;
let page: Page;
let roomId: string;
let admin: TestClient;
let bela: TestClient;
/** Errors in the browser: exceptions of scripts, requests to other hosts, violations of the content security policy. */
const errors: string[] = [];
/** Paths of all requests that scripts of the console have sent. */
const requestedPaths = new Set<string>();

before(async () => {
  const port = await freePort();
  const listener = { port, type: 'http', bind_addresses: ['127.0.0.1'], resources: [{ names: ['client'] }] };
  cas = await CasServer.start();
  server = await startTestServer({
    database: 'sqlite',
    origins: new Map([
      ['server_name', { file: '/etc/hearth/hearth.yaml', line: 3, column: 1 }],
      ['signing_key_path', undefined],
    ]),
    config: {
      http: { listeners: [listener] } as never,
      server: { server_name: 'test', public_baseurl: `http://127.0.0.1:${port}/` },
      sso: ssoOptions({ cas_config: { enabled: true, idp_name: 'University', server_url: cas.url } }),
      outbound: { ip_range_blacklist: [] },
      serverNotices: { server_notices: { system_mxid_localpart: 'notices' } as never },
    },
  });
  admin = await registerAdmin(server);
  const anna = await TestClient.register(server, 'anna');
  const profile = `/_matrix/client/v3/profile/${anna.id}/displayname`;
  const renamed = await anna.request('PUT', profile, { displayname: 'Anna Ambers' });
  assert.equal(renamed.status, 200, renamed.raw);
  roomId = await anna.createRoom({ name: 'Meadow', preset: 'public_chat', room_alias_name: 'meadow' });
  await anna.createRoom({ name: 'Attic' });
  await anna.do('POST', '/pushers/set', {
    app_id: 'org.example.phone',
    kind: 'http',
    lang: 'en',
    pushkey: 'key',
    app_display_name: 'Example',
    device_display_name: 'Phone of Anna',
    data: { url: 'https://localhost:1/_matrix/push/v1/notify' },
  });
  await anna.do('PUT', `/user/${anna.id}/account_data/org.example.settings`, { color: 'green' });
  bela = await TestClient.register(server, 'bela');
  await anna.say(roomId, 'Old news');
  const sent = await anna.call('PUT', `/rooms/${roomId}/send/m.room.message/1`, {
    msgtype: 'm.text',
    body: 'Buy my <b>watches</b>!',
  });
  await bela.call('POST', `/join/${roomId}`, {});
  await bela.say(roomId, 'Sell mine');
  const reported = `/rooms/${roomId}/report/${String(sent.body['event_id'])}`;
  assert.equal((await bela.call('POST', reported, { reason: 'Advertisement' })).status, 200);
  await upload(anna);
  // No server listens at this address, so that it is in a backoff afterwards.
  await anna.request('GET', '/_matrix/client/v3/profile/@nobody:localhost:1', undefined);
  browser = await launchChromium();
  const context = await browser.newContext({ viewport: desk });
  page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of 40[0134]|ERR_INTERNET_DISCONNECTED/.test(message.text()))
      errors.push(message.text());
  });
  page.on('request', (request) => {
    const isOwn =
      [server.baseUrl, cas.url].some((url) => request.url().startsWith(url)) ||
      /^(data|blob):/.test(request.url());
    if (!isOwn) errors.push(`request to ${request.url()}`);
    if (request.resourceType() === 'fetch') requestedPaths.add(new URL(request.url()).pathname);
  });
});
after(async () => {
  await browser?.close();
  await server?.stop();
  await cas?.stop();
});

/** Uploads a picture of one pixel. */
async function upload(user: TestClient): Promise<void> {
  const pixel =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const response = await fetch(`${server.baseUrl}/_matrix/media/v3/upload?filename=pixel.png`, {
    method: 'POST',
    headers: { authorization: `Bearer ${user.token}`, 'content-type': 'image/png' },
    body: Buffer.from(pixel, 'base64'),
  });
  assert.equal(response.status, 200);
}

const desk = { width: 1280, height: 860 };
const phone = { width: 390, height: 800 };

let pictureNumber = 0;

/** Checks a page with all rules of axe in both color schemes and on a phone, and takes pictures of it. */
async function inspect(name: string): Promise<void> {
  const views = [
    ['light', 'light', desk],
    ['dark', 'dark', desk],
    ['phone', 'light', phone],
  ] as const;
  for (const [view, colorScheme, size] of views) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const width = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
    assert.ok(width <= 0, `the page ${name} is wider than the window of a ${view}`);
    if (pictures) {
      const number = String(pictureNumber).padStart(2, '0');
      await page.screenshot({
        path: join(pictures, `${number}-${name}-${view}.png`),
        fullPage: view === 'phone',
      });
    }
    assert.deepEqual(await violations(), [], `${name}, ${view}`);
  }
  pictureNumber += 1;
  await page.setViewportSize(desk);
}

/** Checks all rules that axe has for web pages. */
async function violations(): Promise<readonly string[]> {
  if (!(await page.evaluate('Boolean(globalThis.axe)'))) await page.evaluate(axe);
  // Style sheets are not loaded again: no rule that is checked needs them.
  const options = { resultTypes: ['violations'], preload: false, iframes: false };
  return page.evaluate(`axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html + ' ' + node.failureSummary)))`);
}

/** The newest messages of the room Meadow, as JSON. */
const messages = async () =>
  JSON.stringify((await bela.call('GET', `/rooms/${roomId}/messages`, undefined, { dir: 'b' })).body);

const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
const status = (text: string | RegExp) =>
  page.getByRole('status').filter({ hasText: text }).first().waitFor();
const button = (name: string) => page.getByRole('button', { name, exact: true });
const link = (name: string) => page.getByRole('link', { name, exact: true });
const dialog = () => page.getByRole('dialog');
const confirm = (name: string) => dialog().getByRole('button', { name, exact: true }).click();

test('an administrator signs in with a password, and the console refuses other users', async () => {
  await page.goto(`${server.baseUrl}/_server/admin/ui`);
  await heading('Hearth console');
  await page.getByLabel('User name').fill('anna');
  await page.getByLabel('Password').fill('correct horse');
  await inspect('sign-in');
  await button('Sign in').click();
  await page.getByRole('alert').filter({ hasText: 'not a server administrator' }).waitFor();
  await page.getByLabel('User name').fill('admin');
  await page.getByLabel('Password').fill('password');
  await page.keyboard.press('Enter');
  await heading('Overview');
  assert.equal(await page.evaluate('localStorage.length'), 0);
});

test('an administrator finds, creates, changes and deactivates users', async () => {
  await link('Users').click();
  await page.getByRole('cell', { name: '@bela:test' }).waitFor();
  await inspect('users');
  await page.getByLabel('Search').fill('ambers');
  await page.getByText('1–1 of 1').waitFor();
  await page.getByRole('link', { name: /Anna Ambers/ }).click();
  await heading('Anna Ambers');
  await page.getByRole('link', { name: /Meadow/ }).waitFor();
  await page.getByRole('cell', { name: 'Phone of Anna' }).waitFor();
  await page.getByText('org.example.settings').click();
  await page.getByText('"color": "green"').waitFor();
  await inspect('user');
  await button('Suspend').click();
  await dialog().waitFor();
  await inspect('dialog');
  await confirm('Suspend');
  await status('suspended');
  await page.getByText('Suspended', { exact: true }).waitFor();

  await link('Users').first().click();
  await button('Create a user').click();
  await dialog().getByLabel('User name').fill('anna');
  await dialog().getByLabel('Password').fill('another password');
  await confirm('Create');
  await dialog().getByRole('alert').filter({ hasText: 'taken' }).waitFor();
  assert.equal((await server.api('POST', '/_matrix/client/v3/login', { body: login('anna') })).status, 200);
  await dialog().getByLabel('User name').fill('carla');
  await dialog().getByLabel('Password').fill('correct horse');
  await confirm('Create');
  // The display name of the new user; until the page has loaded it, the heading is the user id.
  await heading('carla');
  assert.equal((await server.api('POST', '/_matrix/client/v3/login', { body: login('carla') })).status, 200);
  await button('Deactivate').click();
  await confirm('Deactivate');
  await status('deactivated');
  assert.equal((await server.api('POST', '/_matrix/client/v3/login', { body: login('carla') })).status, 403);
});

const login = (user: string) => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user },
  password: 'correct horse',
});

test('an administrator redacts all messages of a user', async () => {
  await link('Users').first().click();
  await page.getByRole('link', { name: /@bela:test/ }).click();
  await button('Redact all messages').click();
  await dialog().getByLabel('Reason').fill('Advertisement');
  await confirm('Redact them');
  await status('The redaction has begun');
  await eventually('the redaction', async () => !/Sell mine/.test(await messages()));
  assert.match(await messages(), /watches/);
});

test('an administrator reads a report, redacts the message and deletes the report', async () => {
  await link('Reports').click();
  await page.getByRole('cell', { name: 'Advertisement' }).waitFor();
  await inspect('reports');
  await page.getByRole('link', { name: 'Message of @anna:test' }).click();
  await page.getByText('Buy my <b>watches</b>!', { exact: true }).waitFor();
  await page.getByText('The whole event').click();
  await inspect('report');
  await link('Meadow').click();
  await button('Add a user').click();
  await confirm('Join');
  await page.getByRole('cell', { name: '@admin:test' }).waitFor();
  await button('Make room administrator').click();
  await confirm('Give the rights');
  await status('@admin:test is an administrator');
  await page.goBack();
  await button('Redact').click();
  await dialog().getByLabel('Reason').fill('Advertisement');
  await confirm('Redact');
  await status('has been redacted');
  assert.doesNotMatch(await messages(), /watches/);
  await button('Done with report 1').click();
  await confirm('Delete the report');
  await heading('Reports');
  await page.getByText('There are no open reports').waitFor();
});

test('an administrator sorts rooms, purges the history of one, blocks and deletes it', async () => {
  await link('Rooms').click();
  await button('Members').click();
  await page.getByRole('columnheader', { name: 'Members' }).and(page.locator('[aria-sort]')).waitFor();
  await inspect('rooms');
  await page.getByRole('link', { name: /Meadow/ }).click();
  await heading('Meadow');
  await page.getByRole('cell', { name: '@anna:test' }).waitFor();
  await inspect('room');
  await button('Purge history').click();
  await dialog().getByLabel('Sent before').fill('2999-01-01T00:00');
  await dialog().getByLabel('Also messages of users of this server').check();
  await confirm('Delete them');
  await status('The purge has begun');
  await eventually('the purge', async () => !/Old news/.test(await messages()));
  await button('Block').click();
  await confirm('Block');
  await button('Unblock').waitFor();
  await button('Delete').click();
  await confirm('Delete the room');
  await status('The room has been deleted');
  await page.getByText('This server does not know this room').waitFor();
  await button('Delete').waitFor({ state: 'hidden' });
  await page.getByRole('table', { name: 'Members' }).waitFor({ state: 'hidden' });
  await inspect('room-deleted');
});

test('an administrator makes, changes and deletes registration tokens', async () => {
  await link('Registration tokens').click();
  await page.getByText('There are no registration tokens').waitFor();
  await inspect('no-tokens');
  await button('Create a token').click();
  await dialog().getByLabel('Token').fill('welcome');
  await dialog().getByLabel('Number of uses').fill('3');
  await confirm('Create');
  await page.getByRole('cell', { name: '0 of 3' }).waitFor();
  await button('Change welcome').click();
  await dialog().getByLabel('Number of uses').fill('');
  await confirm('Save');
  await page.getByRole('cell', { name: '0 of any number' }).waitFor();
  await inspect('tokens');
  await button('Delete welcome').click();
  await confirm('Delete');
  await page.getByText('There are no registration tokens').waitFor();
});

test('a change of the uses of a registration token keeps the exact time of its expiry, also when it is in the past', async () => {
  const tokens = '/_synapse/admin/v1/registration_tokens';
  const expiry = Date.now() + 3_600_000 + 12_345;
  const created = await admin.request('POST', `${tokens}/new`, { token: 'exact', expiry_time: expiry });
  assert.equal(created.status, 200, created.raw);
  const limits = async () => {
    const { uses_allowed: uses, expiry_time: at } = (await admin.request('GET', `${tokens}/exact`, undefined))
      .body;
    return [uses, at];
  };
  const allow = async (uses: string) => {
    await link('Overview').click();
    await link('Registration tokens').click();
    await button('Change exact').click();
    await dialog().getByLabel('Number of uses').fill(uses);
    if (uses === '2') await inspect('token-form');
    await confirm('Save');
    await page.getByRole('cell', { name: `0 of ${uses}` }).waitFor();
  };
  await allow('1');
  assert.deepEqual(await limits(), [1, expiry]);
  const database = await openDatabase(server.databaseOptions, { log: silentLogger });
  await database.batch([
    { sql: 'update registration_tokens set expiry_time = 0 where token = ?', rows: [['exact']] },
  ]);
  await database.close();
  await allow('2');
  assert.deepEqual(await limits(), [2, 0]);
  await page.getByText('Expired', { exact: true }).waitFor();
  await button('Change exact').click();
  await dialog().getByLabel('Expires').fill('');
  await confirm('Save');
  await page.getByRole('cell', { name: 'never' }).waitFor();
  assert.deepEqual(await limits(), [2, null]);
  assert.equal((await admin.request('DELETE', `${tokens}/exact`, undefined)).status, 200);
});

test('pages show times that are too late for a date of JavaScript', async () => {
  const tokens = '/_synapse/admin/v1/registration_tokens';
  const expiry = Number.MAX_SAFE_INTEGER;
  const created = await admin.request('POST', `${tokens}/new`, { token: 'late', expiry_time: expiry });
  assert.equal(created.status, 200, created.raw);
  const validity = { user_id: bela.id, expiration_ts: expiry };
  assert.equal(
    (await admin.request('POST', '/_synapse/admin/v1/account_validity/validity', validity)).status,
    200,
  );
  await link('Overview').click();
  await link('Registration tokens').click();
  await button('Change late').click();
  await dialog().waitFor();
  await page.keyboard.press('Escape');
  await link('Background jobs').click();
  await page
    .getByRole('cell', { name: /account-expiry|account expiry/ })
    .first()
    .waitFor();
  assert.equal((await admin.request('DELETE', `${tokens}/late`, undefined)).status, 200);
});

test('an address with an unknown kind of reports shows the reports of messages', async () => {
  await page.evaluate(`location.hash = '#/reports?kind=../x'`);
  await heading('Reports');
  await page.getByText('There are no open reports').waitFor();
  const chosen = await page.evaluate('document.querySelector("select").selectedOptions[0]?.text');
  assert.equal(chosen, 'Reports of messages');
});

test('a search that was typed just before leaving a page does not lead back to that page', async () => {
  await link('Users').click();
  await page.getByLabel('Search').fill('anna');
  await link('Overview').click();
  await heading('Overview');
  await page.waitForTimeout(600);
  await heading('Overview');
  assert.match(page.url(), /#\/$/);
});

test('an administrator sees which servers cannot be reached, and ends the backoff of one', async () => {
  await link('Federation').click();
  await page.getByText('Unreachable', { exact: true }).waitFor();
  await button('Next attempt').click();
  await page.getByRole('columnheader', { name: 'Next attempt' }).and(page.locator('[aria-sort]')).waitFor();
  assert.match(page.url(), /order=next_retry_ts/);
  await inspect('federation');
  await link('localhost:1').click();
  await heading('localhost:1');
  const fact = (name: string) =>
    page
      .locator('dl > div')
      .filter({ has: page.getByText(name, { exact: true }) })
      .locator('dd')
      .textContent();
  assert.match((await fact('Unreachable since')) ?? '', new RegExp(String(new Date().getFullYear())));
  assert.equal(await fact('Rooms with waiting events'), '0');
  assert.equal(await fact('Waiting EDUs'), '0');
  await inspect('destination');
  await button('Try again now').click();
  await confirm('Try again');
  await status('is sent at once');
});

test('an administrator looks at media, and puts a file in quarantine', async () => {
  await link('Media').click();
  await page.getByRole('link', { name: /@anna:test/ }).waitFor();
  await inspect('media');
  await page.getByRole('link', { name: /@anna:test/ }).click();
  await button('Show pixel.png').click();
  await dialog().getByRole('img', { name: 'pixel.png' }).waitFor();
  await confirm('Close');
  await button('Quarantine pixel.png').click();
  await confirm('Quarantine');
  await page.getByText('In quarantine', { exact: true }).waitFor();
  await inspect('user-media');
  await button('Delete pixel.png').click();
  await confirm('Delete');
  await page.getByText('This user has uploaded no file').waitFor();
});

test('an administrator sends a notice to one user, and to all users', async () => {
  await link('Server notices').click();
  await inspect('notices');
  await button('Notice to one user').click();
  await dialog().getByLabel('User id').fill('@bela:test');
  await dialog().getByLabel('Text').fill('Maintenance at noon');
  await confirm('Send');
  await status('sent to @bela:test');
  const { rooms } = (await bela.call('GET', '/sync')).body as { rooms?: { invite?: object } };
  assert.equal(Object.keys(rooms?.invite ?? {}).length, 1);
  await button('Notice to all users').click();
  await dialog().getByLabel('Text').fill('It is done');
  await confirm('Send to all');
  await page.getByRole('heading', { name: 'Newest notice to all users' }).waitFor();
  await status('sent to 3 users');
  // The server sends the notice, whichever page is open.
  await link('Overview').click();
  await link('Server notices').click();
  await status('sent to 3 users');
  await inspect('notice-to-all');
});

test('an administrator sees the progress of a notice to all users, and who did not receive it', async () => {
  const path = '**/v1/send_server_notice_to_all/*';
  let answer = {
    status: 'active',
    total: 400,
    sent: 99,
    failed: 1,
    failed_users: { '@bela:test': 'No room' },
  };
  await page.route(path, (route) => route.fulfill({ json: answer }));
  await link('Overview').click();
  await link('Server notices').click();
  const bar = page.getByRole('progressbar', { name: 'Sent notices' });
  await bar.waitFor();
  assert.equal(await bar.getAttribute('value'), '0.25');
  await page.getByText('99 of 400 users have received it.').waitFor();
  await page.locator('dl > div').filter({ hasText: '@bela:test' }).filter({ hasText: 'No room' }).waitFor();
  await button('Cancel the notice').waitFor();
  await inspect('notice-progress');
  answer = { ...answer, status: 'complete', sent: 399 };
  await status('sent to 399 users. Users who did not receive it: 1.');
  await bar.waitFor({ state: 'hidden' });
  await button('Cancel the notice').waitFor({ state: 'hidden' });
  await page.unroute(path);
});

test('an administrator cancels a notice to all users', async () => {
  const path = '**/v1/send_server_notice_to_all/*';
  let answer = { status: 'active', total: 400, sent: 99, failed: 0, failed_users: {} };
  await page.route(path, (route) => {
    if (route.request().method() !== 'DELETE') return route.fulfill({ json: answer });
    answer = { ...answer, status: 'cancelled' };
    return route.fulfill({ json: {} });
  });
  await link('Overview').click();
  await link('Server notices').click();
  await button('Cancel the notice').click();
  await confirm('Stop sending');
  await status('The notice was cancelled: 99 of 400 users have received it.');
  await button('Cancel the notice').waitFor({ state: 'hidden' });
  await page.unroute(path);
});

test('an administrator sees jobs, statistics, options, the audit log and live figures', async () => {
  await link('Background jobs').click();
  await page
    .getByRole('cell', { name: /rooms: deletion/ })
    .first()
    .waitFor();
  await button('Pause background updates').click();
  await confirm('Pause');
  await button('Continue background updates').waitFor();
  const update = { job_name: 'populate_stats_process_rooms' };
  const started = await admin.request('POST', '/_synapse/admin/v1/background_updates/start_job', update);
  assert.equal(started.status, 200, started.raw);
  await page.getByRole('progressbar', { name: 'Progress of admin/background-update' }).waitFor();
  await inspect('jobs');
  await button('Continue background updates').click();
  await confirm('Continue');
  await button('Pause background updates').waitFor();
  await link('Statistics').click();
  for (const name of ['Users', 'Rooms', 'Messages a day', 'Media', 'Database'])
    await page.getByRole('img', { name: `Plot of ${name}` }).waitFor();
  await button('Measure rooms').click();
  await page.getByRole('table', { name: 'Largest rooms' }).waitFor();
  await inspect('statistics');
  await link('Configuration').click();
  await page.getByLabel('Search').fill('registration_shared');
  await page.getByRole('cell', { name: '<secret>', exact: true }).waitFor();
  /** Searches an option. @returns the text of its column From */
  const sourceOf = async (name: string) => {
    await page.getByLabel('Search').fill(name);
    const row = page.getByRole('row').filter({ has: page.getByText(name, { exact: true }) });
    return row.getByRole('cell').last().textContent();
  };
  await page.getByRole('columnheader', { name: 'From' }).waitFor();
  assert.equal(await sourceOf('server_name'), 'hearth.yamlline 3');
  assert.equal(await sourceOf('signing_key_path'), 'environment, or another option');
  assert.equal(await sourceOf('max_upload_size'), 'default');
  const shown = page.getByLabel('Show');
  assert.equal(await shown.inputValue(), 'all');
  await shown.selectOption('Options that were set');
  await page.getByText('No option that was set is named like “max_upload_size”').waitFor();
  await shown.selectOption('All options');
  await page.getByLabel('Search').fill('registration_shared');
  await inspect('configuration');
  await link('Audit log').click();
  const deactivation = page.getByRole('row').filter({ hasText: 'deactivate user' }).first();
  for (const text of ['@admin:test', '@carla:test', '127.0.0.1', String(new Date().getUTCFullYear())])
    await deactivation.filter({ hasText: text }).waitFor();
  await inspect('audit-log');
  await link('Overview').click();
  const live = ['Syncs', 'Events per second', 'Waiting for other servers', 'Event loop lag', 'Memory'];
  for (const name of live) await page.getByRole('img', { name: `Plot of ${name}` }).waitFor();
  // The page reads the figures again: a rate appears with the second reading.
  await page.getByRole('img', { name: /^Plot of Requests per second\. Newest: All \d/ }).waitFor();
  await inspect('overview');
});

test('an administrator can use the console with the keyboard only', async () => {
  await page.reload();
  await heading('Overview');
  const focused = () => page.evaluate('document.activeElement.textContent');
  assert.equal(await focused(), 'Overview');
  await page.keyboard.press('Shift+Tab');
  await button('Skip to the content').focus();
  await page.keyboard.press('Enter');
  assert.equal(await focused(), 'Overview');
  await link('Users').focus();
  await page.keyboard.press('Enter');
  await heading('Users');
  assert.equal(await focused(), 'Users');
  await button('Create a user').focus();
  await page.keyboard.press('Enter');
  await dialog().waitFor();
  await page.keyboard.type('dora');
  assert.equal(await dialog().getByLabel('User name').inputValue(), 'dora');
  await page.keyboard.press('Escape');
  await dialog().waitFor({ state: 'hidden' });
  assert.equal(await focused(), 'Create a user');
});

test('a page shows that the server cannot be reached, and loads after "Try again"', async () => {
  await page.context().setOffline(true);
  await link('Rooms').click();
  await page.getByRole('alert').filter({ hasText: 'The server cannot be reached' }).waitFor();
  await inspect('unreachable');
  await page.context().setOffline(false);
  await button('Try again').click();
  await page.getByRole('link', { name: /Attic/ }).waitFor();
});

test('the session ends when an administrator signs out, and when the server ends it', async () => {
  const { devices } = (await admin.request('GET', '/_synapse/admin/v2/users/@admin:test/devices', undefined))
    .body as {
    devices: { device_id: string; display_name: string | null }[];
  };
  const session = devices.find(({ display_name: name }) => name === 'Hearth console')!;
  const path = `/_synapse/admin/v2/users/@admin:test/devices/${session.device_id}`;
  assert.equal((await admin.request('DELETE', path, undefined)).status, 200);
  await link('Users').click();
  await heading('Hearth console');
  await page.getByText('Your session has ended').waitFor();
  await page.getByLabel('User name').fill('@admin:test');
  await page.getByLabel('Password').fill('password');
  await button('Sign in').click();
  await heading('Users');
  await button('Sign out').click();
  await heading('Hearth console');
  assert.equal(await page.evaluate('sessionStorage.length'), 0);
});

test('an administrator signs in at an identity provider, and no token stays in the address', async () => {
  cas.user = { name: 'sam' };
  await link('Continue with University').click();
  await page
    .getByRole('link', { name: 'Continue' })
    .or(page.getByRole('button', { name: 'Continue' }))
    .click();
  await page.getByRole('alert').filter({ hasText: 'not a server administrator' }).waitFor();
  await admin.request('PUT', '/_synapse/admin/v1/users/@sam:test/admin', { admin: true });
  await link('Continue with University').click();
  await page
    .getByRole('link', { name: 'Continue' })
    .or(page.getByRole('button', { name: 'Continue' }))
    .click();
  await page.getByText('@sam:test').waitFor();
  assert.doesNotMatch(page.url(), /oken/);
  await button('Sign out').click();
  await heading('Hearth console');
  await button('Sign in').waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
});

test('a link with a login token does not sign the visitor in, and the token does not stay in the address', async () => {
  const logins: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') logins.push(request.url());
  });
  await page.goto(`${server.baseUrl}/_server/admin/ui/?loginToken=foreign`);
  await heading('Hearth console');
  await button('Sign in').waitFor();
  assert.doesNotMatch(page.url(), /oken/);
  assert.deepEqual(logins, []);
  assert.deepEqual(errors, []);
});

test('the console uses the admin API, and the client API only to sign in and out', () => {
  const ofClientApi = /^\/_proto\/client\/v3\/(login|logout)$/;
  const paths = [...requestedPaths];
  const otherPaths = paths.filter((path) => !/^\/_server\/admin\/v\d\//.test(path));
  assert.ok(paths.length - otherPaths.length > 30, String(paths));
  // The endpoint of the deletions of a room answers 404 for a room without one, which browsers log as an error.
  assert.deepEqual(
    paths.filter((path) => path.endsWith('/delete_status')),
    [],
  );
  assert.deepEqual(
    otherPaths.filter((path) => !ofClientApi.test(path)),
    [],
  );
});
