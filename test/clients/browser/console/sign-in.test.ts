import assert from 'node:assert/strict';
import { after, before, test } from '../../bounded-test.ts';
import { ConsolePage } from './console-page.ts';

const ui = new ConsolePage();
const { button, heading, checkView, link } = ui;

before(() => ui.start());
after(() => ui.stop());

test('an administrator signs in with a password, and the console refuses other users', async () => {
  await ui.page.goto(`${ui.server.baseUrl}/_server/admin/ui`);
  await heading('Hearth console');
  await ui.page.getByLabel('User name').fill('anna');
  await ui.page.getByLabel('Password').fill('correct horse');
  await checkView('sign-in');
  await button('Sign in').click();
  await ui.page.getByRole('alert').filter({ hasText: 'not a server administrator' }).waitFor();
  await ui.page.getByLabel('User name').fill('admin');
  await ui.page.getByLabel('Password').fill('password');
  await ui.page.keyboard.press('Enter');
  await heading('Overview');
  assert.equal(await ui.page.evaluate('localStorage.length'), 0);
});

test('the session ends when an administrator signs out, and when the server ends it', async () => {
  // The overview would notice the end of the session by itself, because it reads its figures again and again.
  await link('Rooms').click();
  await heading('Rooms');
  const { devices } = (
    await ui.admin.request('GET', '/_synapse/admin/v2/users/@admin:test/devices', undefined)
  ).body as {
    devices: { device_id: string; display_name: string | null }[];
  };
  const session = devices.find(({ display_name: name }) => name === 'Hearth console')!;
  const path = `/_synapse/admin/v2/users/@admin:test/devices/${session.device_id}`;
  assert.equal((await ui.admin.request('DELETE', path, undefined)).status, 200);
  await link('Users').click();
  await heading('Hearth console');
  await ui.page.getByText('Your session has ended').waitFor();
  await ui.page.getByLabel('User name').fill('@admin:test');
  await ui.page.getByLabel('Password').fill('password');
  await button('Sign in').click();
  await heading('Users');
  await button('Sign out').click();
  await heading('Hearth console');
  assert.equal(await ui.page.evaluate('sessionStorage.length'), 0);
});

test('an administrator signs in at an identity provider, and no token stays in the address', async () => {
  ui.cas.user = { name: 'sam' };
  await link('Continue with University').click();
  await ui.page
    .getByRole('link', { name: 'Continue' })
    .or(ui.page.getByRole('button', { name: 'Continue' }))
    .click();
  await ui.page.getByRole('alert').filter({ hasText: 'not a server administrator' }).waitFor();
  await ui.admin.request('PUT', '/_synapse/admin/v1/users/@sam:test/admin', { admin: true });
  await link('Continue with University').click();
  await ui.page
    .getByRole('link', { name: 'Continue' })
    .or(ui.page.getByRole('button', { name: 'Continue' }))
    .click();
  await ui.page.getByText('@sam:test').waitFor();
  assert.doesNotMatch(ui.page.url(), /token/i);
  await button('Sign out').click();
  await heading('Hearth console');
  await button('Sign in').waitFor();
  assert.equal(await ui.page.getByRole('alert').count(), 0);
});

test('a link with a login token does not sign the visitor in, and the token does not stay in the address', async () => {
  const logins: string[] = [];
  ui.page.on('request', (request) => {
    if (request.method() === 'POST') logins.push(request.url());
  });
  await ui.page.goto(`${ui.server.baseUrl}/_server/admin/ui/?loginToken=foreign`);
  await heading('Hearth console');
  await button('Sign in').waitFor();
  assert.doesNotMatch(ui.page.url(), /token/i);
  assert.deepEqual(logins, []);
});
