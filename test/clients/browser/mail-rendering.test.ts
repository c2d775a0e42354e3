import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { Templates } from '../../../src/kernel/templates/index.ts';
import { mailTemplates } from '../../../src/mail/index.ts';
import { MailingServer } from '../../../src/pushers/test/mailing-server.ts';
import type { ReceivedMail } from '../../support/network/mail-server.ts';
import { after, before, test } from '../bounded-test.ts';
import { launchChromium } from './web-page.ts';

/** Folder for screenshots of the mails, for review by developers; none are taken when it is not set. */
const pictures = process.env['HEARTH_TEST_PICTURES'];

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const clientUrl = 'https://app.example.org';

/** A mail as a mail program shows it. */
interface ShownMail {
  readonly name: string;
  readonly html: string;
  readonly text: string;
}

let browser: Browser;
let fixture: MailingServer;
const mails: ShownMail[] = [];
/** URLs that the mails have requested. There must be none, because mail programs load nothing. */
const requests: string[] = [];

before(async () => {
  fixture = await MailingServer.start(
    'sqlite',
    { enable_notifs: true, client_base_url: clientUrl, app_name: 'Hearth' },
    { request_token_inhibit_3pid_errors: true },
  );
  await collectAccountMails();
  await collectNotifications();
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await fixture?.stop();
});

const shown = (name: string, { content }: Pick<ReceivedMail, 'content'>): ShownMail => {
  let { html = '' } = content;
  // Mail programs take images from the parts of the mail.
  for (const { contentId, mimeType, content: bytes } of content.attachments) {
    const base64 = Buffer.from(bytes as ArrayBuffer).toString('base64');
    html = html.replaceAll(`cid:${contentId?.slice(1, -1)}`, `data:${mimeType};base64,${base64}`);
  }
  return { name, html, text: content.text ?? '' };
};

/** Collects the mails about accounts: each kind once. */
async function collectAccountMails(): Promise<void> {
  const { homeserver } = fixture;
  await homeserver.addAddress(await homeserver.server.register('zoe'), 'zoe@example.org');
  for (const [name, purpose, address] of [
    ['registration', 'register', 'new@example.org'],
    ['add-address', 'account/3pid', 'other@example.org'],
    ['already-in-use', 'register', 'zoe@example.org'],
    ['password-reset', 'account/password', 'zoe@example.org'],
  ] as const) {
    const number = homeserver.mailServer.received.length;
    const { status, raw } = await homeserver.requestMail(purpose, address, { client_secret: name });
    assert.equal(status, 200, raw);
    mails.push(shown(name, await homeserver.mailServer.mail(number)));
  }
  const templates = new Templates({ folders: [mailTemplates] });
  const values = { app_name: 'Hearth', server_name: 'test' };
  const [html, text] = await Promise.all(
    ['html', 'txt'].map((kind) => templates.render(`mail_test.${kind}`, values)),
  );
  mails.push({ name: 'test', html: html!, text: text! });
}

/** Collects mails about missed messages, of one room, of several rooms and of an encrypted room, and about invites. */
async function collectNotifications(): Promise<void> {
  const { clients } = fixture;
  const anna = await fixture.homeserver.server.register('anna');
  await fixture.uploadAvatar(anna);
  const addressed = ['bea', 'ben', 'bob', 'cem', 'cid', 'eve'] as const;
  const users = new Map<string, Awaited<ReturnType<MailingServer['subscriber']>>>();
  for (const name of addressed) users.set(name, await fixture.subscriber(name));
  const [bea, ben, bob, cem, cid, eve] = addressed.map((name) => users.get(name)!);

  await clients.say(anna, await clients.room(anna, [bea!]), 'Hello');

  const garden = await clients.room(anna, [ben!], { name: 'Garden' });
  for (const content of [
    { msgtype: 'm.text', body: 'This was before.\n\nIt has <b>two</b> paragraphs & an ampersand.' },
    { msgtype: 'm.text', body: `https://example.org/${'long'.repeat(60)}` },
    { msgtype: 'm.emote', body: 'waters the tomatoes' },
    { msgtype: 'm.image', body: 'tomatoes.jpg', url: 'mxc://test/tomatoes' },
    { msgtype: 'm.text', body: 'A long story. '.repeat(80) },
  ]) {
    await clients.send(anna, garden, content);
  }

  const encryption = { type: 'm.room.encryption', content: { algorithm: 'm.megolm.v1.aes-sha2' } };
  const secret = { algorithm: 'm.megolm.v1.aes-sha2', ciphertext: 'c2VjcmV0', session_id: 'a' };
  const kitchen = await clients.room(anna, [bob!, eve!], {
    name: `Kitchen${'WithoutSpaces'.repeat(10)}`,
    initial_state: [encryption],
  });
  await clients.send(anna, kitchen, secret, 'm.room.encrypted');
  await clients.say(anna, await clients.room(anna, [bob!], { name: 'Shed' }), 'Where is the spade?');
  await clients.say(anna, await clients.room(anna, [bob!]), 'Are you there?');

  const closed = { preset: 'private_chat', is_direct: true };
  await clients.room(anna, [], { ...closed, invite: [cem!.userId] });
  const space = { name: 'House and garden', creation_content: { type: 'm.space' } };
  await clients.room(anna, [], { ...closed, ...space, invite: [cid!.userId] });

  for (const [name, user] of [
    ['one-message', 'bea'],
    ['one-room', 'ben'],
    ['several-rooms', 'bob'],
    ['invite', 'cem'],
    ['invite-to-space', 'cid'],
    ['encrypted-room', 'eve'],
  ] as const) {
    mails.push(shown(name, await fixture.mailTo(user)));
  }
}

const views = [
  ['phone', 'light', { width: 360, height: 740 }],
  ['phone', 'dark', { width: 360, height: 740 }],
  ['desktop', 'light', { width: 1280, height: 800 }],
  ['desktop', 'dark', { width: 1280, height: 800 }],
] as const;

async function openView(colorScheme: 'light' | 'dark', viewport: { width: number; height: number }) {
  const context: BrowserContext = await browser.newContext({ colorScheme, viewport });
  await context.route('**/*', (route) => {
    requests.push(route.request().url());
    return route.abort();
  });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  return { context, page };
}

async function checkWidth(page: Page, what: string): Promise<void> {
  const width = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
  assert.ok(width <= 0, `${what} is ${width} pixels wider than the window`);
}

async function takePicture(page: Page, name: string): Promise<void> {
  if (pictures !== undefined)
    await page.screenshot({ path: join(pictures, `mail-${name}.png`), fullPage: true });
}

for (const [device, colorScheme, viewport] of views) {
  test(`every kind of mail fits the width of a ${device} in Chromium and has enough contrast, in ${colorScheme} colors`, async () => {
    const { context, page } = await openView(colorScheme, viewport);
    const violations: string[] = [];
    for (const { name, html } of mails) {
      await page.setContent(html);
      await checkWidth(page, name);
      assert.notEqual(await page.title(), '');
      assert.equal(await page.locator('h1').count(), 1);
      await takePicture(page, `${name}-${device}-${colorScheme}`);
      await page.evaluate(axe);
      const options = { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] };
      const matches =
        (await page.evaluate(`axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html + ' ' + node.failureSummary)))`)) as string[];
      violations.push(...matches.map((violation) => `${name}: ${violation}`));
    }
    assert.deepEqual([violations, requests], [[], []]);
    await context.close();
  });
}

test('the text part of every mail fits a window of 360 pixels in Chromium, has the heading and the links of the HTML part except those to single messages, and contains no markup', async () => {
  const { context, page } = await openView('light', { width: 360, height: 740 });
  for (const { name, html, text } of mails) {
    await page.setContent(html);
    const links = (await page.evaluate(
      '[...document.links].map((link) => link.getAttribute("href"))',
    )) as string[];
    const heading = await page.locator('h1').textContent();
    assert.ok(text.startsWith(`${heading}\n`), text);
    // Links to single messages are only in the HTML part.
    for (const link of links.filter((url) => !/\/\$|%24/.test(url)))
      assert.ok(text.includes(link), `${name}: ${link}`);
    assert.doesNotMatch(text, /&(amp|lt|gt|quot|#\d+);|<\/?(p|a|div|table|strong)\b/);
    await page.setContent('<pre style="white-space: pre-wrap; overflow-wrap: anywhere"></pre>');
    await page.locator('pre').evaluate((element, shownText) => {
      (element as { textContent: string }).textContent = shownText;
    }, text);
    await checkWidth(page, name);
    await takePicture(page, `${name}-text`);
  }
  assert.deepEqual(requests, []);
  await context.close();
});

test('the links of mails lead to pages of the server and into the client, and nowhere else', async () => {
  const { context, page } = await openView('light', { width: 360, height: 740 });
  for (const { name, html } of mails) {
    await page.setContent(html);
    const links = new Set(
      (await page.evaluate('[...document.links].map((link) => link.getAttribute("href"))')) as string[],
    );
    assert.equal(links.size > 0, name !== 'test', name);
    for (const link of links) {
      if (link.startsWith(`${clientUrl}/#/room/`) || link === clientUrl) continue;
      const { origin, pathname, search } = new URL(link);
      assert.equal(origin, 'https://test', link);
      const response = await fetch(fixture.homeserver.server.baseUrl + pathname + search);
      assert.equal(response.status, 200, await response.text());
    }
  }
  await context.close();
});
