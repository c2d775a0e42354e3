import assert from 'node:assert/strict';
import { EventType, JoinRule, MsgType, Preset, RelationType } from 'matrix-js-sdk';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { SlidingSession } from './sliding-session.ts';

let server: ServerUnderTest;
let alice: SlidingSession;
let bob: SlidingSession;
before(async () => {
  server = await serverUnderTest();
  alice = await SlidingSession.ofNewUser(server.url, 'alice');
  bob = await SlidingSession.ofNewUser(server.url, 'bob');
});
after(async () => {
  alice?.stop();
  bob?.stop();
  await server?.stop();
});

/** Creates a private room of Alice, which Bob joins by an invite. @returns its id */
async function sharedRoom(name = 'By the fire'): Promise<string> {
  const { room_id } = await alice.client.createRoom({
    preset: Preset.PrivateChat,
    name,
    invite: [bob.userId],
  });
  const invitation = await bob.room(room_id, 'invite');
  assert.equal(invitation.name, name);
  await bob.client.joinRoom(room_id);
  await Promise.all([alice.room(room_id), bob.room(room_id)]);
  return room_id;
}

test('announces simplified sliding sync in /versions', async () => {
  assert.ok(await alice.client.doesServerSupportUnstableFeature('org.matrix.simplified_msc3575'));
});

test('shows an invite, and messages after the join, by sliding sync', async () => {
  const room = await sharedRoom();
  const { event_id } = await alice.client.sendTextMessage(room, 'Is it warm over there?');
  const received = await bob.event(room, event_id);
  assert.equal(received.getContent()['body'], 'Is it warm over there?');
  await eventually('two members', () => alice.client.getRoom(room)?.getJoinedMemberCount() === 2);
  const answer = await bob.client.sendTextMessage(room, 'Very.');
  await alice.event(room, answer.event_id);
  await alice.client.setRoomName(room, 'At the hearth');
  await eventually('the name', () => bob.client.getRoom(room)?.name === 'At the hearth');
});

test('shows edits, reactions and redactions by sliding sync', async () => {
  const room = await sharedRoom();
  const { event_id } = await alice.client.sendTextMessage(room, 'Wram');
  const message = await bob.event(room, event_id);
  await alice.client.sendMessage(room, {
    msgtype: MsgType.Text,
    body: '* Warm',
    'm.new_content': { msgtype: MsgType.Text, body: 'Warm' },
    'm.relates_to': { rel_type: RelationType.Replace, event_id },
  });
  await eventually('the edit', () => message.getContent()['body'] === 'Warm');
  await bob.client.sendEvent(room, EventType.Reaction, {
    'm.relates_to': { rel_type: RelationType.Annotation, event_id, key: '🔥' },
  });
  await eventually('the reaction', () => {
    const relations = alice.client.getRoom(room)?.relations;
    const reactions = relations?.getChildEventsForEvent(
      event_id,
      RelationType.Annotation,
      EventType.Reaction,
    );
    return reactions?.getSortedAnnotationsByKey()?.[0]?.[0] === '🔥';
  });
  await alice.client.redactEvent(room, event_id);
  await eventually('the redaction', () => message.isRedacted());
});

test('shows a thread by sliding sync', async () => {
  const room = await sharedRoom();
  const root = await alice.client.sendTextMessage(room, 'What shall we burn?');
  await bob.event(room, root.event_id);
  await bob.client.sendMessage(room, root.event_id, { msgtype: MsgType.Text, body: 'Oak' });
  await eventually('the thread', () => alice.client.getRoom(room)?.getThread(root.event_id)?.length === 1);
});

test('shows the list of spaces and the list of conversations at the same time by sliding sync', async () => {
  const { room_id: space } = await alice.client.createRoom({
    preset: Preset.PrivateChat,
    name: 'The house',
    creation_content: { type: 'm.space' },
  });
  const room = await sharedRoom();
  await alice.client.sendStateEvent(space, EventType.SpaceChild, { via: ['hearth.test'] }, room);
  const spaceRoom = await alice.room(space);
  assert.ok(spaceRoom.isSpaceRoom());
  await eventually(
    'the child',
    () =>
      spaceRoom.currentState.getStateEvents(EventType.SpaceChild, room)?.getContent()['via'] !== undefined,
  );
  await eventually('the count', () => alice.slidingSync.getListData('spaces')?.joinedCount === 1);
});

test('shows a knock, the invite and the join by sliding sync', async () => {
  const { room_id } = await alice.client.createRoom({
    preset: Preset.PrivateChat,
    name: 'Behind the door',
    initial_state: [{ type: EventType.RoomJoinRules, content: { join_rule: JoinRule.Knock } }],
  });
  await alice.room(room_id);
  await bob.client.knockRoom(room_id);
  await eventually(
    'the knock',
    () => alice.client.getRoom(room_id)?.getMember(bob.userId)?.membership === 'knock',
  );
  await alice.client.invite(room_id, bob.userId);
  await bob.room(room_id, 'invite');
  await bob.client.joinRoom(room_id);
  await bob.room(room_id);
});

test('shows a room upgrade by sliding sync', async () => {
  const room = await sharedRoom();
  const { replacement_room } = await alice.client.upgradeRoom(room, '11');
  await eventually(
    'the tombstone',
    () =>
      bob.client.getRoom(room)?.currentState.getStateEvents(EventType.RoomTombstone, '')?.getContent()[
        'replacement_room'
      ] === replacement_room,
  );
  const replacement = await alice.room(replacement_room);
  assert.equal(replacement.findPredecessor()?.roomId, room);
});

test('sends typing, receipts, tags and account data by extensions of sliding sync', async () => {
  const room = await sharedRoom();
  await bob.client.sendTyping(room, true, 20_000);
  await eventually('bob typing', () => alice.client.getRoom(room)?.getMember(bob.userId)?.typing === true);
  const { event_id } = await alice.client.sendTextMessage(room, 'have you seen this?');
  const message = await bob.event(room, event_id);
  await eventually('the count', () => bob.client.getRoom(room)?.getUnreadNotificationCount() === 1);
  await bob.client.sendReadReceipt(message);
  await eventually('the receipt', () => alice.client.getRoom(room)?.hasUserReadEvent(bob.userId, event_id));
  await eventually('nothing unread', () => bob.client.getRoom(room)?.getUnreadNotificationCount() === 0);
  await bob.client.setRoomTag(room, 'm.favourite', { order: 0.25 });
  await eventually('the tag', () => bob.client.getRoom(room)?.tags['m.favourite']?.['order'] === 0.25);
  await bob.client.setAccountData(EventType.Direct, { [alice.userId]: [room] });
  await eventually('account data', () => bob.client.getAccountData(EventType.Direct) !== undefined);
});

test('shows rooms outside of the range of a sliding sync list by a room subscription and by a larger range', async () => {
  const rooms = [];
  for (const name of ['one', 'two', 'three', 'four']) {
    rooms.push((await alice.client.createRoom({ preset: Preset.PrivateChat, name })).room_id);
  }
  const lateUser = await SlidingSession.ofNewUser(server.url, 'late');
  try {
    for (const room of rooms) await alice.client.invite(room, lateUser.userId);
    for (const room of rooms) await lateUser.client.joinRoom(room);
    await lateUser.room(rooms[3]!);
    lateUser.slidingSync.modifyRoomSubscriptions(new Set([rooms[0]!]));
    await lateUser.room(rooms[0]!);
    lateUser.slidingSync.setListRanges('conversations', [[0, 9]]);
    for (const room of rooms) await lateUser.room(room);
    assert.equal(lateUser.slidingSync.getListData('conversations')?.joinedCount, 4);
  } finally {
    lateUser.stop();
  }
});
