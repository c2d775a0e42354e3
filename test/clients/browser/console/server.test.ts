import assert from 'node:assert/strict';
import { TestClient } from '../../../support/users/test-client.ts';
import { after, before, test } from '../../bounded-test.ts';
import { ConsolePage, isUnexpected } from './console-page.ts';

const ui = new ConsolePage();
const { button, confirm, dialog, heading, checkView, link, status } = ui;

before(() =>
  ui.startSignedIn(async (console) => {
    const { admin, anna } = console;
    await upload(console);
    // No server listens at this address, so that a backoff for it begins.
    await anna.request('GET', '/_matrix/client/v3/profile/@nobody:localhost:1', undefined);
    const hall = await anna.createRoom({ name: 'Hall' });
    const deleted = await admin.request('DELETE', `/_synapse/admin/v2/rooms/${hall}`, { purge: true });
    assert.equal(deleted.status, 200, deleted.raw);
    const carla = '/_synapse/admin/v1/deactivate/@carla:test';
    await TestClient.register(console.server, 'carla');
    assert.equal((await admin.request('POST', carla, { erase: false })).status, 200);
  }),
);
after(() => ui.stop());

test('an administrator sees which servers cannot be reached, and ends the backoff of one', async () => {
  await link('Federation').click();
  await ui.page.getByText('Unreachable', { exact: true }).waitFor();
  await button('Next attempt').click();
  await ui.page
    .getByRole('columnheader', { name: 'Next attempt' })
    .and(ui.page.locator('[aria-sort]'))
    .waitFor();
  assert.match(ui.page.url(), /order=next_retry_ts/);
  await checkView('federation');
  await link('localhost:1').click();
  await heading('localhost:1');
  const fact = (name: string) =>
    ui.page
      .locator('dl > div')
      .filter({ has: ui.page.getByText(name, { exact: true }) })
      .locator('dd')
      .textContent();
  assert.match((await fact('Unreachable since')) ?? '', new RegExp(String(new Date().getFullYear())));
  assert.equal(await fact('Rooms with waiting events'), '0');
  assert.equal(await fact('Waiting EDUs'), '0');
  await checkView('destination');
  await button('Try again now').click();
  await confirm('Try again');
  await status('is sent at once');
});

test('an administrator looks at media, puts a file in quarantine and deletes it', async () => {
  await link('Media').click();
  await ui.page.getByRole('link', { name: /@anna:test/ }).waitFor();
  await checkView('media');
  await ui.page.getByRole('link', { name: /@anna:test/ }).click();
  await button('Show pixel.png').click();
  await dialog().getByRole('img', { name: 'pixel.png' }).waitFor();
  await confirm('Close');
  await button('Quarantine pixel.png').click();
  await confirm('Quarantine');
  await ui.page.getByText('In quarantine', { exact: true }).waitFor();
  await checkView('user-media');
  await button('Delete pixel.png').click();
  await confirm('Delete');
  await ui.page.getByText('This user has uploaded no file').waitFor();
});

test('an administrator sees jobs, statistics, options, the audit log and live figures', async () => {
  await link('Background jobs').click();
  await ui.page
    .getByRole('cell', { name: /rooms: deletion/ })
    .first()
    .waitFor();
  await button('Pause background updates').click();
  await confirm('Pause');
  await button('Continue background updates').waitFor();
  const update = { job_name: 'populate_stats_process_rooms' };
  const started = await ui.admin.request('POST', '/_synapse/admin/v1/background_updates/start_job', update);
  assert.equal(started.status, 200, started.raw);
  await ui.page.getByRole('progressbar', { name: 'Progress of admin/background-update' }).waitFor();
  await checkView('jobs');
  await button('Continue background updates').click();
  await confirm('Continue');
  await button('Pause background updates').waitFor();
  await link('Statistics').click();
  for (const name of ['Users', 'Rooms', 'Messages a day', 'Media', 'Database'])
    await ui.page.getByRole('img', { name: `Plot of ${name}` }).waitFor();
  await button('Measure rooms').click();
  await ui.page.getByRole('table', { name: 'Largest rooms' }).waitFor();
  await checkView('statistics');
  await link('Configuration').click();
  await ui.page.getByLabel('Search').fill('registration_shared');
  await ui.page.getByRole('cell', { name: '<secret>', exact: true }).waitFor();
  /** Searches for an option. @returns the text of its column From */
  const sourceOf = async (name: string) => {
    await ui.page.getByLabel('Search').fill(name);
    const row = ui.page.getByRole('row').filter({ has: ui.page.getByText(name, { exact: true }) });
    return row.getByRole('cell').last().textContent();
  };
  await ui.page.getByRole('columnheader', { name: 'From' }).waitFor();
  assert.equal(await sourceOf('server_name'), 'hearth.yamlline 3');
  assert.equal(await sourceOf('signing_key_path'), 'environment, or another option');
  assert.equal(await sourceOf('max_upload_size'), 'default');
  const shown = ui.page.getByLabel('Show');
  assert.equal(await shown.inputValue(), 'all');
  await shown.selectOption('Options that were set');
  await ui.page.getByText('No option that was set is named like “max_upload_size”').waitFor();
  await shown.selectOption('All options');
  await ui.page.getByLabel('Search').fill('registration_shared');
  await checkView('configuration');
  await link('Audit log').click();
  const deactivation = ui.page.getByRole('row').filter({ hasText: 'deactivate user' }).first();
  for (const text of ['@admin:test', '@carla:test', '127.0.0.1', String(new Date().getUTCFullYear())])
    await deactivation.filter({ hasText: text }).waitFor();
  await checkView('audit-log');
  await link('Overview').click();
  const live = ['Syncs', 'Events per second', 'Waiting for other servers', 'Event loop lag', 'Memory'];
  for (const name of live) await ui.page.getByRole('img', { name: `Plot of ${name}` }).waitFor();
  // The page reads the figures again: a rate appears with the second reading.
  await ui.page.getByRole('img', { name: /^Plot of Requests per second: All \d/ }).waitFor();
  await checkView('overview');
});

test('the console uses the admin API, and the client API only to sign in and out', () => {
  const paths = [...ui.requestedPaths];
  assert.ok(paths.filter((path) => !isUnexpected(path)).length > 15, String(paths));
  assert.deepEqual(paths.filter(isUnexpected), []);
});

/** Uploads a picture of one pixel. */
async function upload({ server, anna }: ConsolePage): Promise<void> {
  const pixel =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const response = await fetch(`${server.baseUrl}/_matrix/media/v3/upload?filename=pixel.png`, {
    method: 'POST',
    headers: { authorization: `Bearer ${anna.token}`, 'content-type': 'image/png' },
    body: Buffer.from(pixel, 'base64'),
  });
  assert.equal(response.status, 200);
}
