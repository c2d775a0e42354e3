import assert from 'node:assert/strict';
import { openDatabase } from '../../../../src/kernel/database/index.ts';
import { silentLogger } from '../../../../src/kernel/observability/index.ts';
import { after, before, test } from '../../bounded-test.ts';
import { ConsolePage } from './console-page.ts';

const ui = new ConsolePage();
const { button, confirm, dialog, checkView, link } = ui;

before(() => ui.startSignedIn());
after(() => ui.stop());

test('an administrator makes, changes and deletes registration tokens', async () => {
  await link('Registration tokens').click();
  await ui.page.getByText('There are no registration tokens').waitFor();
  await checkView('no-tokens');
  await button('Create a token').click();
  await dialog().getByLabel('Token').fill('welcome');
  await dialog().getByLabel('Number of uses').fill('3');
  await confirm('Create');
  await ui.page.getByRole('cell', { name: '0 of 3' }).waitFor();
  await button('Change welcome').click();
  await dialog().getByLabel('Number of uses').fill('');
  await confirm('Save');
  await ui.page.getByRole('cell', { name: '0 of any number' }).waitFor();
  await checkView('tokens');
  await button('Delete welcome').click();
  await confirm('Delete');
  await ui.page.getByText('There are no registration tokens').waitFor();
});

test('a change of the number of uses of a registration token keeps the exact time of its expiry, also when this time is in the past', async () => {
  const tokens = '/_synapse/admin/v1/registration_tokens';
  // In an hour, with seconds and milliseconds, which the form does not show.
  const expiry = Date.now() + 3_600_000 + 12_345;
  const created = await ui.admin.request('POST', `${tokens}/new`, { token: 'exact', expiry_time: expiry });
  assert.equal(created.status, 200, created.raw);
  const limits = async () => {
    const { uses_allowed: uses, expiry_time: expiresAt } = (
      await ui.admin.request('GET', `${tokens}/exact`, undefined)
    ).body;
    return [uses, expiresAt];
  };
  const allow = async (uses: string) => {
    await link('Overview').click();
    await link('Registration tokens').click();
    await button('Change exact').click();
    await dialog().getByLabel('Number of uses').fill(uses);
    if (uses === '2') await checkView('token-form');
    await confirm('Save');
    await ui.page.getByRole('cell', { name: `0 of ${uses}` }).waitFor();
  };
  await allow('1');
  assert.deepEqual(await limits(), [1, expiry]);
  const database = await openDatabase(ui.server.databaseOptions, { log: silentLogger });
  await database.batch([
    { sql: 'update registration_tokens set expiry_time = 0 where token = ?', rows: [['exact']] },
  ]);
  await database.close();
  await allow('2');
  assert.deepEqual(await limits(), [2, 0]);
  await ui.page.getByText('Expired', { exact: true }).waitFor();
  await button('Change exact').click();
  await dialog().getByLabel('Expires').fill('');
  await confirm('Save');
  await ui.page.getByRole('cell', { name: 'never' }).waitFor();
  assert.deepEqual(await limits(), [2, null]);
  assert.equal((await ui.admin.request('DELETE', `${tokens}/exact`, undefined)).status, 200);
});

test('pages show times that are too late for a date of JavaScript', async () => {
  const tokens = '/_synapse/admin/v1/registration_tokens';
  const expiry = Number.MAX_SAFE_INTEGER;
  const created = await ui.admin.request('POST', `${tokens}/new`, { token: 'late', expiry_time: expiry });
  assert.equal(created.status, 200, created.raw);
  const validity = { user_id: ui.bela.id, expiration_ts: expiry };
  assert.equal(
    (await ui.admin.request('POST', '/_synapse/admin/v1/account_validity/validity', validity)).status,
    200,
  );
  await link('Overview').click();
  await link('Registration tokens').click();
  await button('Change late').click();
  await dialog().waitFor();
  await ui.page.keyboard.press('Escape');
  await link('Background jobs').click();
  await ui.page
    .getByRole('cell', { name: /account-expiry|account expiry/ })
    .first()
    .waitFor();
  assert.equal((await ui.admin.request('DELETE', `${tokens}/late`, undefined)).status, 200);
});
