import assert from 'node:assert/strict';
import { after, before, test } from '../../bounded-test.ts';
import { ConsolePage } from './console-page.ts';

const ui = new ConsolePage();
const { button, confirm, dialog, checkView, link, status } = ui;

before(() => ui.startSignedIn());
after(() => ui.stop());

test('an administrator sends a notice to one user, and to all users', async () => {
  await link('Server notices').click();
  await checkView('notices');
  await button('Notice to one user').click();
  await dialog().getByLabel('User id').fill('@bela:test');
  await dialog().getByLabel('Text').fill('Maintenance at noon');
  await confirm('Send');
  await status('sent to @bela:test');
  const { rooms } = (await ui.bela.call('GET', '/sync')).body as { rooms?: { invite?: object } };
  assert.equal(Object.keys(rooms?.invite ?? {}).length, 1);
  await button('Notice to all users').click();
  await dialog().getByLabel('Text').fill('It is done');
  await confirm('Send to all');
  await ui.page.getByRole('heading', { name: 'Newest notice to all users' }).waitFor();
  await status('sent to 3 users');
  // The server sends the notice, whichever page is open.
  await link('Overview').click();
  await link('Server notices').click();
  await status('sent to 3 users');
  await checkView('notice-to-all');
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
  await ui.page.route(path, (route) => route.fulfill({ json: answer }));
  await link('Overview').click();
  await link('Server notices').click();
  const bar = ui.page.getByRole('progressbar', { name: 'Sent notices' });
  await bar.waitFor();
  assert.equal(await bar.getAttribute('value'), '0.25');
  await ui.page.getByText('99 of 400 users have received it.').waitFor();
  await ui.page
    .locator('dl > div')
    .filter({ hasText: '@bela:test' })
    .filter({ hasText: 'No room' })
    .waitFor();
  await button('Cancel the notice').waitFor();
  await checkView('notice-progress');
  answer = { ...answer, status: 'complete', sent: 399 };
  await status('sent to 399 users. Users who did not receive it: 1.');
  await bar.waitFor({ state: 'hidden' });
  await button('Cancel the notice').waitFor({ state: 'hidden' });
  await ui.page.unroute(path);
});

test('an administrator cancels a notice to all users', async () => {
  const path = '**/v1/send_server_notice_to_all/*';
  let answer = { status: 'active', total: 400, sent: 99, failed: 0, failed_users: {} };
  await ui.page.route(path, (route) => {
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
  await ui.page.unroute(path);
});
