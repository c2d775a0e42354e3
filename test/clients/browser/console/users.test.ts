import assert from 'node:assert/strict';
import { after, before, test } from '../../bounded-test.ts';
import { ConsolePage } from './console-page.ts';

const ui = new ConsolePage();
const { button, confirm, dialog, heading, checkView, link, status } = ui;

before(() =>
  ui.startSignedIn(async ({ anna }) => {
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
  }),
);
after(() => ui.stop());

const login = (user: string) => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user },
  password: 'correct horse',
});

test('an administrator finds, creates, changes and deactivates users', async () => {
  await link('Users').click();
  await ui.page.getByRole('cell', { name: '@bela:test' }).waitFor();
  await checkView('users');
  await ui.page.getByLabel('Search').fill('ambers');
  await ui.page.getByText('1–1 of 1').waitFor();
  await ui.page.getByRole('link', { name: /Anna Ambers/ }).click();
  await heading('Anna Ambers');
  await ui.page.getByRole('link', { name: /Meadow/ }).waitFor();
  await ui.page.getByRole('cell', { name: 'Phone of Anna' }).waitFor();
  await ui.page.getByText('org.example.settings').click();
  await ui.page.getByText('"color": "green"').waitFor();
  await checkView('user');
  await button('Suspend').click();
  await dialog().waitFor();
  await checkView('dialog');
  await confirm('Suspend');
  await status('suspended');
  await ui.page.getByText('Suspended', { exact: true }).waitFor();

  await link('Users').first().click();
  await button('Create a user').click();
  await dialog().getByLabel('User name').fill('anna');
  await dialog().getByLabel('Password').fill('another password');
  await confirm('Create');
  await dialog().getByRole('alert').filter({ hasText: 'taken' }).waitFor();
  assert.equal(
    (await ui.server.api('POST', '/_matrix/client/v3/login', { body: login('anna') })).status,
    200,
  );
  await dialog().getByLabel('User name').fill('carla');
  await dialog().getByLabel('Password').fill('correct horse');
  await confirm('Create');
  // The display name of the new user; until the page has loaded it, the heading is the user id.
  await heading('carla');
  assert.equal(
    (await ui.server.api('POST', '/_matrix/client/v3/login', { body: login('carla') })).status,
    200,
  );
  await button('Deactivate').click();
  await confirm('Deactivate');
  await status('deactivated');
  assert.equal(
    (await ui.server.api('POST', '/_matrix/client/v3/login', { body: login('carla') })).status,
    403,
  );
});
