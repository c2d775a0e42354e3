import assert from 'node:assert/strict';
import { type Browser, chromium, type Page } from 'playwright-core';
import { linkIn, ServerWithMail } from '../../../src/third-party-ids/test/server-with-mail.ts';
import { after, before, test } from '../bounded-test.ts';

/** Debian's path of Chromium. */
const executablePath = process.env['HEARTH_TEST_CHROMIUM'] ?? '/usr/bin/chromium';
/** A folder for screenshots of the pages, for people who want to look at them. */
const screenshots = process.env['HEARTH_TEST_SCREENSHOTS'];

let browser: Browser;
let at: ServerWithMail;
before(async () => {
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'], timeout: 120_000 });
  at = await ServerWithMail.start('sqlite');
  await at.addAddress(await at.server.register('anna'), 'anna@example.org');
});
after(async () => {
  await browser?.close();
  await at?.stop();
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
  await page.goto(at.server.baseUrl + url);
  return { page, errors };
}

/** The link of the mail of a number, at the address at which the server listens. */
async function linkOfMail(index: number): Promise<string> {
  const { pathname, search } = new URL(linkIn(await at.mailServer.mail(index)));
  return pathname + search;
}

const look = async (page: Page, name: string) => {
  if (screenshots) await page.screenshot({ path: `${screenshots}/${name}.png` });
};

test('lets a person in Chromium confirm a new password with the link of the mail', async () => {
  const secret = { client_secret: 'reset' };
  const { body } = await at.askForMail('account/password', 'anna@example.org', {
    ...secret,
    next_link: `${at.server.baseUrl}/health`,
  });
  const { page, errors } = await openPage(await linkOfMail(1));
  await look(page, 'reset');
  await page.getByRole('button', { name: 'Yes, it was me' }).click();
  await page.waitForURL('**/health');
  const threepid_creds = { sid: body['sid'], ...secret };
  const auth = { type: 'm.login.email.identity', threepid_creds };
  assert.equal((await at.post('/account/password', { new_password: 'brand new', auth })).status, 200);
  assert.equal((await at.login({ type: 'm.id.user', user: 'anna' }, 'brand new')).status, 200);
  assert.deepEqual(errors, []);
});
