import assert from 'node:assert/strict';
import { join } from 'node:path';
import { EventType, JoinRule, MsgType, Preset, RelationType, RoomType } from 'matrix-js-sdk';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { password, Session } from '../js-sdk/session.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { startPageSet } from './page-set.ts';
import { openWebPage, type WebPage } from './web-page.ts';

/** Folder for screenshots of the pages, for review by developers; none are taken when it is not set. */
const pictures = process.env['HEARTH_TEST_PICTURES'];

let server: ServerUnderTest;
/** Sends everything that the page must show. */
let alice: Session;
/** Uses the web page in the browser as well. */
let bob: Session;
let web: WebPage;
before(async () => {
  server = await serverUnderTest({ url_preview_enabled: true, url_preview_ip_range_blacklist: [] });
  [alice, bob] = [await Session.ofNewUser(server.url, 'alice'), await Session.ofNewUser(server.url, 'bob')];
  web = await openWebPage();
});
after(async () => {
  await web?.close();
  alice?.stop();
  bob?.stop();
  await server?.stop();
});

const room = (roomId: string) => web.page.locator(`[data-room="${roomId}"]`);
const message = (eventId: string) => web.page.locator(`[data-event="${eventId}"]`).first();

async function createRoom(name: string, more: object = {}): Promise<string> {
  const options = { preset: Preset.PublicChat, name, ...more };
  return (await alice.client.createRoom(options)).room_id;
}

test('a web client in Chromium shows a conversation as it happens', async () => {
  const roomId = await createRoom('By the fire', { room_version: '11' });
  await bob.client.joinRoom(roomId);
  const space = await createRoom('House', { creation_content: { type: RoomType.Space } });
  await alice.client.sendStateEvent(space, EventType.SpaceChild, { via: ['hearth.test'] }, roomId);
  await bob.client.joinRoom(space);
  const messageId = (await alice.client.sendTextMessage(roomId, 'Is it warm?')).event_id;

  await web.page.fill('[name=server]', server.url);
  await web.page.fill('[name=user]', bob.userId);
  await web.page.fill('[name=password]', password);
  await web.page.click('#login button');
  await message(messageId).waitFor();
  assert.equal(await room(roomId).locator('h2').textContent(), 'By the fire');
  assert.match((await message(messageId).textContent()) ?? '', /: Is it warm\?$/);

  await room(space).locator(`h2[data-space=true] ~ [data-child="${roomId}"]`).waitFor();

  const content = { msgtype: MsgType.Text, body: 'Is it warm over there?' } as const;
  const relation = { rel_type: RelationType.Replace, event_id: messageId } as const;
  const edit = { ...content, body: `* ${content.body}`, 'm.new_content': content, 'm.relates_to': relation };
  await alice.client.sendEvent(roomId, EventType.RoomMessage, edit as never);
  await web.page.locator(`[data-event="${messageId}"][data-edited=true]`).waitFor();
  assert.match((await message(messageId).textContent()) ?? '', /: Is it warm over there\?$/);

  const annotation = { rel_type: RelationType.Annotation, event_id: messageId, key: '🔥' } as const;
  await alice.client.sendEvent(roomId, EventType.Reaction, { 'm.relates_to': annotation });
  await message(messageId).locator('[data-reaction="🔥"]').waitFor();

  await alice.client.sendEvent(roomId, messageId, EventType.RoomMessage, {
    msgtype: MsgType.Text,
    body: 'In the thread',
  });
  await room(roomId).locator(`[data-thread="${messageId}"] >> text=In the thread`).waitFor();

  await room(roomId).locator('[name=text]').fill('Warm enough');
  await room(roomId).locator('form button').click();
  await eventually('the message sent in the browser', () =>
    alice.client
      .getRoom(roomId)
      ?.getLiveTimeline()
      .getEvents()
      .some((event) => event.getSender() === bob.userId && event.getContent()['body'] === 'Warm enough'),
  );
});

test('a web client shows previews of the pages that a message links to, with their images', async () => {
  const { web: pages, expected } = await startPageSet();
  try {
    const roomId = await createRoom('Links', { room_version: '11' });
    await bob.client.joinRoom(roomId);
    const body = `Look: ${expected.map(({ url }) => url).join(' ')}`;
    const { event_id } = await alice.client.sendTextMessage(roomId, body);
    for (const { url, site, title, description, imageWidth } of expected) {
      const card = message(event_id).locator(`[data-preview="${url}"][data-complete=true]`);
      await card.waitFor();
      const text = async (name: string) =>
        (await card.locator(`[data-property="og:${name}"]`).allTextContents()).join();
      assert.deepEqual([await text('site_name'), await text('title')], [site ?? '', title ?? ''], url);
      assert.match(await text('description'), description ?? /^$|./, url);
      const width = await card.locator('img').getAttribute('data-width');
      assert.equal(Number(width), imageWidth, url);
    }
    if (pictures !== undefined)
      await message(event_id).screenshot({ path: join(pictures, 'url-previews.png') });
  } finally {
    await pages.stop();
  }
});

test('a web client knocks on a room, and shows the invite and the join', async () => {
  const rules = { type: EventType.RoomJoinRules, state_key: '', content: { join_rule: JoinRule.Knock } };
  const roomId = await createRoom('Behind the door', { initial_state: [rules] });
  await web.page.fill('#knock [name=room]', roomId);
  await web.page.click('#knock button');
  await web.page.locator(`[data-room="${roomId}"][data-membership=knock]`).waitFor();
  assert.equal(await room(roomId).locator('h2').textContent(), 'Behind the door');
  await eventually(
    'the knock',
    () => alice.client.getRoom(roomId)?.getMember(bob.userId)?.membership === 'knock',
  );
  await alice.client.invite(roomId, bob.userId);
  await web.page.locator(`[data-room="${roomId}"][data-membership=invite]`).waitFor();
  await bob.client.joinRoom(roomId);
  await web.page.locator(`[data-room="${roomId}"][data-membership=join]`).waitFor();
});

test('a web client follows a room upgrade', async () => {
  const roomId = await createRoom('Old walls', { room_version: '11' });
  await bob.client.joinRoom(roomId);
  const replacement = (await alice.client.upgradeRoom(roomId, '12')).replacement_room;
  await room(roomId).locator(`[data-successor="${replacement}"]`).click();
  await web.page.locator(`[data-room="${replacement}"][data-membership=join]`).waitFor();
  assert.equal(await room(replacement).locator('h2').textContent(), 'Old walls');
  assert.deepEqual(web.errors, []);
});
