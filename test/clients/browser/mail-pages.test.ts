import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { linkIn, ServerWithMail } from '../../../src/third-party-ids/test/server-with-mail.ts';
import { after, before, test } from '../bounded-test.ts';
import { launchChromium } from './web-page.ts';

let browser: Browser;
let fixture: ServerWithMail;
before(async () => {
  browser = await launchChromium();
  fixture = await ServerWithMail.start('sqlite');
  await fixture.addAddress(await fixture.server.register('anna'), 'anna@example.org');
});
after(async () => {
  await browser?.close();
  await fixture?.stop();
});

async function openPage(url: string): Promise<{ page: Page; errors: readonly string[] }> {
  const context = await browser.newContext({ colorScheme: 'dark' });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    // A form that is sent too early is answered with an error status, which browsers log.
    if (message.type() === 'error' && !/status of 4/.test(message.text())) errors.push(message.text());
  });
  await page.goto(fixture.server.baseUrl + url);
  return { page, errors };
}

/** Returns the path and query of the link in a mail. @param index of the mail, from 0 */
async function linkOfMail(index: number): Promise<string> {
  const { pathname, search } = new URL(linkIn(await fixture.mailServer.mail(index)));
  return pathname + search;
}

test('a person confirms a new password in Chromium with the link of the mail', async () => {
  const secret = { client_secret: 'reset' };
  const mailIndex = fixture.mailServer.received.length;
  const { body } = await fixture.requestMail('account/password', 'anna@example.org', {
    ...secret,
    next_link: `${fixture.server.baseUrl}/health`,
  });
  const { page, errors } = await openPage(await linkOfMail(mailIndex));
  await page.getByRole('button', { name: 'Yes, it was me' }).click();
  await page.waitForURL('**/health');
  const threepid_creds = { sid: body['sid'], ...secret };
  const auth = { type: 'm.login.email.identity', threepid_creds };
  assert.equal((await fixture.post('/account/password', { new_password: 'brand new', auth })).status, 200);
  assert.equal((await fixture.login({ type: 'm.id.user', user: 'anna' }, 'brand new')).status, 200);
  assert.deepEqual(errors, []);
});

test('a person who has forgotten the password sets a new one in Chromium with the link of the mail, and logs in', async () => {
  const mailIndex = fixture.mailServer.received.length;
  const { page, errors } = await openPage('/_matrix/static/client/login/');
  await page.getByRole('link', { name: 'Forgot your password?' }).click();
  await page.getByLabel('Mail address of your account').fill('anna@example.org');
  await page.getByLabel('New password', { exact: true }).fill('newer still');
  await page.getByLabel('New password again').fill('newer still');
  await page.getByRole('button', { name: 'Send the mail' }).click();
  await page.getByRole('status').filter({ hasText: 'A mail is on its way' }).waitFor();
  await page.getByRole('button', { name: 'I have opened the link' }).click();
  await page.getByRole('alert').filter({ hasText: 'has not been validated' }).waitFor();
  const mailPage = await openPage(await linkOfMail(mailIndex));
  await mailPage.page.getByRole('button', { name: 'Yes, it was me' }).click();
  await mailPage.page.getByRole('heading', { name: 'Almost done' }).waitFor();
  await page.getByRole('button', { name: 'I have opened the link' }).click();
  await page.getByRole('heading', { name: 'Your new password is set' }).waitFor();
  await page.goto(`${fixture.server.baseUrl}/_matrix/static/client/login/`);
  await page.getByLabel('User name or mail address').fill('anna@example.org');
  await page.getByLabel('Password').fill('newer still');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'You are signed in' }).waitFor();
  assert.deepEqual([...errors, ...mailPage.errors], []);
});
