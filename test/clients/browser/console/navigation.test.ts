import assert from 'node:assert/strict';
import { after, before, test } from '../../bounded-test.ts';
import { ConsolePage } from './console-page.ts';

const ui = new ConsolePage();
const { button, dialog, heading, checkView, link } = ui;

before(() => ui.startSignedIn());
after(() => ui.stop());

test('a search that was typed just before leaving a page does not lead back to that page', async () => {
  await link('Users').click();
  await ui.page.clock.install();
  await ui.page.getByLabel('Search').fill('anna');
  await link('Overview').click();
  await heading('Overview');
  // Searches begin a fraction of a second after typing.
  await ui.page.clock.runFor(1_000);
  await heading('Overview');
  assert.match(ui.page.url(), /#\/$/);
});

test('an administrator can use the console with the keyboard only', async () => {
  await ui.page.reload();
  await heading('Overview');
  const focused = () => ui.page.evaluate('document.activeElement.textContent');
  assert.equal(await focused(), 'Overview');
  await ui.page.keyboard.press('Shift+Tab');
  await button('Skip to the content').focus();
  await ui.page.keyboard.press('Enter');
  assert.equal(await focused(), 'Overview');
  await link('Users').focus();
  await ui.page.keyboard.press('Enter');
  await heading('Users');
  assert.equal(await focused(), 'Users');
  await button('Create a user').focus();
  await ui.page.keyboard.press('Enter');
  await dialog().waitFor();
  await ui.page.keyboard.type('dora');
  assert.equal(await dialog().getByLabel('User name').inputValue(), 'dora');
  await ui.page.keyboard.press('Escape');
  await dialog().waitFor({ state: 'hidden' });
  assert.equal(await focused(), 'Create a user');
});

test('a page shows that the server cannot be reached, and loads after "Try again"', async () => {
  await ui.page.context().setOffline(true);
  await link('Rooms').click();
  await ui.page.getByRole('alert').filter({ hasText: 'The server cannot be reached' }).waitFor();
  await checkView('unreachable');
  await ui.page.context().setOffline(false);
  await button('Try again').click();
  await ui.page.getByRole('link', { name: /Attic/ }).waitFor();
});
