import assert from 'node:assert/strict';
import { MsgType, Preset } from 'matrix-js-sdk';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { Session } from './session.ts';

let server: ServerUnderTest;
let alice: Session;
let bob: Session;
before(async () => {
  server = await serverUnderTest();
  alice = await Session.ofNewUser(server.url, 'alice');
  bob = await Session.ofNewUser(server.url, 'bob');
});
after(async () => {
  alice?.stop();
  bob?.stop();
  await server?.stop();
});

/** Returns a private room of Alice's that Bob was invited to and has joined. */
async function sharedRoom(): Promise<string> {
  const { room_id } = await alice.client.createRoom({ preset: Preset.PrivateChat, name: 'By the fire' });
  await alice.client.invite(room_id, bob.userId);
  await bob.room(room_id, 'invite');
  await bob.client.joinRoom(room_id);
  await Promise.all([alice.room(room_id), bob.room(room_id)]);
  return room_id;
}

test('shows the inviter and the room name of an invite, and the members after the join', async () => {
  const { room_id } = await alice.client.createRoom({ preset: Preset.PrivateChat, name: 'By the fire' });
  await alice.client.invite(room_id, bob.userId);
  const invitation = await bob.room(room_id, 'invite');
  assert.equal(invitation.name, 'By the fire');
  assert.equal(invitation.getMember(bob.userId)?.events.member?.getSender(), alice.userId);

  await bob.client.joinRoom(room_id);
  await bob.room(room_id);
  const memberIds = await eventually('bob among the members', () => {
    const members = alice.client.getRoom(room_id)?.getJoinedMembers() ?? [];
    return members.length === 2 && members.map(({ userId }) => userId).sort();
  });
  assert.deepEqual(memberIds, [alice.userId, bob.userId].sort());
});

test('lets a user reject an invite', async () => {
  const { room_id } = await alice.client.createRoom({ preset: Preset.PrivateChat, invite: [bob.userId] });
  await bob.room(room_id, 'invite');
  await bob.client.leave(room_id);
  await eventually(
    'the refusal',
    () => alice.client.getRoom(room_id)?.getMember(bob.userId)?.membership === 'leave',
  );
});

test('delivers messages in both directions, and a reply with the id of the event that it refers to', async () => {
  const room = await sharedRoom();
  const question = await alice.client.sendTextMessage(room, 'Is it warm over there?');
  const received = await bob.event(room, question.event_id);
  assert.equal(received.getSender(), alice.userId);
  assert.equal(received.getContent()['body'], 'Is it warm over there?');

  const answer = await bob.client.sendMessage(room, {
    msgtype: MsgType.Text,
    body: 'Very.',
    'm.relates_to': { 'm.in_reply_to': { event_id: question.event_id } },
  });
  const reply = await alice.event(room, answer.event_id);
  assert.equal(reply.getSender(), bob.userId);
  assert.equal(reply.replyEventId, question.event_id);
});

test('removes the content of a redacted message for all members', async () => {
  const room = await sharedRoom();
  const { event_id } = await alice.client.sendTextMessage(room, 'I take this back');
  await bob.event(room, event_id);
  await alice.client.redactEvent(room, event_id, undefined, { reason: 'second thoughts' });
  const event = await bob.event(room, event_id);
  await eventually('the redaction', () => event.isRedacted());
  assert.deepEqual(event.getContent(), {});
  const fetched = await bob.client.fetchRoomEvent(room, event_id);
  assert.deepEqual(fetched.content, {});
});

test('shows changes of the room name and of display names', async () => {
  const room = await sharedRoom();
  await alice.client.setRoomName(room, 'At the hearth');
  await eventually('the name of the room', () => bob.client.getRoom(room)?.name === 'At the hearth');
  await alice.client.setDisplayName('Alice of the fire');
  await eventually(
    'the name of the member',
    () => bob.client.getRoom(room)?.getMember(alice.userId)?.rawDisplayName === 'Alice of the fire',
  );
  assert.equal((await bob.client.getProfileInfo(alice.userId)).displayname, 'Alice of the fire');
});

test('hides new messages from a user who has left', async () => {
  const room = await sharedRoom();
  await bob.client.leave(room);
  await bob.room(room, 'leave');
  await eventually(
    'bob to be gone',
    () => alice.client.getRoom(room)?.getMember(bob.userId)?.membership === 'leave',
  );
  const { event_id } = await alice.client.sendTextMessage(room, 'after the leave');
  await assert.rejects(bob.client.fetchRoomEvent(room, event_id), { httpStatus: 404 });
  await bob.client.forget(room);
  await assert.rejects(bob.client.joinRoom(room), { errcode: 'M_FORBIDDEN' });
});
