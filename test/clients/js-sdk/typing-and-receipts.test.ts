import assert from 'node:assert/strict';
import { Preset, type Room } from 'matrix-js-sdk';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { Session } from './session.ts';

let server: ServerUnderTest;
let alice: Session;
let bob: Session;
let roomId: string;
let roomOfAlice: Room;
let roomOfBob: Room;
before(async () => {
  server = await serverUnderTest();
  alice = await Session.ofNewUser(server.url, 'alice');
  bob = await Session.ofNewUser(server.url, 'bob');
  const { room_id } = await alice.client.createRoom({ preset: Preset.PublicChat });
  roomId = room_id;
  await bob.client.joinRoom(roomId);
  roomOfAlice = await alice.room(roomId);
  roomOfBob = await bob.room(roomId);
  await eventually('bob among the members', () => roomOfAlice.getMember(bob.userId) !== null);
});
after(async () => {
  alice?.stop();
  bob?.stop();
  await server?.stop();
});

test('shows when another user starts and stops typing', async () => {
  const isTyping = () => roomOfAlice.getMember(bob.userId)?.typing;
  await bob.client.sendTyping(roomId, true, 20_000);
  await eventually('bob typing', () => isTyping() === true);
  await bob.client.sendTyping(roomId, false, 0);
  await eventually('bob not typing', () => isTyping() === false);
});

test('ends typing after its timeout', async () => {
  const isTyping = () => roomOfAlice.getMember(bob.userId)?.typing;
  await bob.client.sendTyping(roomId, true, 1_500);
  await eventually('bob typing', () => isTyping() === true);
  await eventually('bob not typing', () => isTyping() === false);
});

test('counts unread messages until a read receipt, which other users see', async () => {
  const { event_id } = await alice.client.sendTextMessage(roomId, 'have you seen this?');
  const message = await bob.event(roomId, event_id);
  await eventually('the count', () => roomOfBob.getUnreadNotificationCount() === 1);
  await bob.client.sendReadReceipt(message);
  await eventually('the receipt', () => roomOfAlice.hasUserReadEvent(bob.userId, event_id));
  await eventually('the count to be nothing', () => roomOfBob.getUnreadNotificationCount() === 0);
});

test('shows the fully read marker to a device that logs in later', async (context) => {
  const { event_id } = await alice.client.sendTextMessage(roomId, 'and this?');
  await bob.event(roomId, event_id);
  await bob.client.setRoomReadMarkers(roomId, event_id);
  const device = await Session.ofLogin(server.url, bob.userId);
  context.after(() => device.stop());
  const room = await device.room(roomId);
  await eventually(
    'the marker',
    () => room.getAccountData('m.fully_read')?.getContent()['event_id'] === event_id,
  );
});

test('sets and removes a tag, which other users do not see', async () => {
  await bob.client.setRoomTag(roomId, 'm.favourite', { order: 0.25 });
  await eventually('the tag', () => roomOfBob.tags['m.favourite']?.['order'] === 0.25);
  assert.deepEqual((await bob.client.getRoomTags(roomId)).tags, { 'm.favourite': { order: 0.25 } });
  assert.deepEqual((await alice.client.getRoomTags(roomId)).tags, {});
  await bob.client.deleteRoomTag(roomId, 'm.favourite');
  await eventually('no tag', () => roomOfBob.tags['m.favourite'] === undefined);
});
