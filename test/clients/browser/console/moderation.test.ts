import assert from 'node:assert/strict';
import { after, before, test } from '../../bounded-test.ts';
import { eventually } from '../../eventually.ts';
import { ConsolePage } from './console-page.ts';

const ui = new ConsolePage();
const { button, confirm, dialog, heading, checkView, link, status } = ui;

before(() =>
  ui.startSignedIn(async ({ anna, bela, roomId }) => {
    await anna.say(roomId, 'Old news');
    const reportedId = await anna.say(roomId, 'Buy my <b>watches</b>!');
    await bela.call('POST', `/join/${roomId}`, {});
    await bela.say(roomId, 'Sell mine');
    const report = `/rooms/${roomId}/report/${reportedId}`;
    assert.equal((await bela.call('POST', report, { reason: 'Advertisement' })).status, 200);
  }),
);
after(() => ui.stop());

/** The newest messages of the room Meadow, as JSON. */
const messages = async () =>
  JSON.stringify((await ui.bela.call('GET', `/rooms/${ui.roomId}/messages`, undefined, { dir: 'b' })).body);

test('an administrator redacts all messages of a user', async () => {
  await link('Users').first().click();
  await ui.page.getByRole('link', { name: /@bela:test/ }).click();
  await button('Redact all messages').click();
  await dialog().getByLabel('Reason').fill('Advertisement');
  await confirm('Redact them');
  await status('The redaction has begun');
  await eventually('the redaction', async () => !/Sell mine/.test(await messages()));
  assert.match(await messages(), /watches/);
});

test('an administrator reads a report, redacts the message and deletes the report', async () => {
  await link('Reports').click();
  await ui.page.getByRole('cell', { name: 'Advertisement' }).waitFor();
  await checkView('reports');
  await ui.page.getByRole('link', { name: 'Message of @anna:test' }).click();
  await ui.page.getByText('Buy my <b>watches</b>!', { exact: true }).waitFor();
  await ui.page.getByText('The whole event').click();
  await checkView('report');
  await link('Meadow').click();
  await button('Add a user').click();
  await confirm('Join');
  await ui.page.getByRole('cell', { name: '@admin:test' }).waitFor();
  await button('Make room administrator').click();
  await confirm('Give the rights');
  await status('@admin:test is an administrator');
  await ui.page.goBack();
  await button('Redact').click();
  await dialog().getByLabel('Reason').fill('Advertisement');
  await confirm('Redact');
  await status('has been redacted');
  assert.doesNotMatch(await messages(), /watches/);
  await button('Done with report 1').click();
  await confirm('Delete the report');
  await heading('Reports');
  await ui.page.getByText('There are no open reports').waitFor();
});

test('an administrator sorts rooms, purges the history of one, blocks and deletes it', async () => {
  await link('Rooms').click();
  await button('Members').click();
  await ui.page.getByRole('columnheader', { name: 'Members' }).and(ui.page.locator('[aria-sort]')).waitFor();
  await checkView('rooms');
  await ui.page.getByRole('link', { name: /Meadow/ }).click();
  await heading('Meadow');
  await ui.page.getByRole('cell', { name: '@anna:test' }).waitFor();
  await checkView('room');
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
  await ui.page.getByText('This server does not know this room').waitFor();
  await button('Delete').waitFor({ state: 'hidden' });
  await ui.page.getByRole('table', { name: 'Members' }).waitFor({ state: 'hidden' });
  await checkView('room-deleted');
});

test('an address with an unknown kind of reports shows the reports of messages', async () => {
  await ui.page.evaluate(`location.hash = '#/reports?kind=../x'`);
  await heading('Reports');
  await ui.page.getByText('There are no open reports').waitFor();
  const chosen = await ui.page.evaluate('document.querySelector("select").selectedOptions[0]?.text');
  assert.equal(chosen, 'Reports of messages');
});
