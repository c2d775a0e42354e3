import assert from 'node:assert/strict';
import { EventType, JoinRule, MsgType, Preset, RelationType, type Room } from 'matrix-js-sdk';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { HearthProcess } from '../hearth-process.ts';
import { Session } from './session.ts';

// These tests use classic sync; `sliding-sync.test.ts` tests many of the same features with sliding sync.
let server: HearthProcess;
let alice: Session;
let bob: Session;
before(async () => {
  server = await HearthProcess.create({ max_event_delay_duration: '1h' });
  await server.start();
  alice = await Session.withThreads(server.url, 'alice');
  bob = await Session.withThreads(server.url, 'bob');
});
after(async () => {
  alice?.stop();
  bob?.stop();
  await server?.remove();
});

/** Returns a public room of Alice's that Bob has joined. */
async function sharedRoom(options: object = {}): Promise<string> {
  const { room_id } = await alice.client.createRoom({
    preset: Preset.PublicChat,
    name: 'By the fire',
    ...options,
  });
  await bob.client.joinRoom(room_id);
  await Promise.all([alice.room(room_id), bob.room(room_id)]);
  return room_id;
}

const childrenOf = (room: Room) =>
  room.currentState
    .getStateEvents(EventType.SpaceChild)
    .filter((event) => Array.isArray(event.getContent()['via']))
    .map((event) => event.getStateKey());

test('shows the children of a space, and its hierarchy', async () => {
  const room = await sharedRoom();
  const space = await sharedRoom({ name: 'The house', creation_content: { type: 'm.space' } });
  await alice.client.sendStateEvent(space, EventType.SpaceChild, { via: ['hearth.test'] }, room);
  const spaceRoom = await bob.room(space);
  assert.ok(spaceRoom.isSpaceRoom());
  await eventually('the child', () => childrenOf(spaceRoom).includes(room));
  const { rooms } = await bob.client.getRoomHierarchy(space, 20);
  assert.deepEqual(
    rooms.map(({ room_id }) => room_id),
    [space, room],
  );
  assert.deepEqual(
    rooms[0]!.children_state.map(({ state_key }) => state_key),
    [room],
  );
  await alice.client.sendStateEvent(space, EventType.SpaceChild, {}, room);
  await eventually('no child', () => !childrenOf(spaceRoom).includes(room));
});

test('shows edits to current members and to a device that logs in later, and reactions until they are redacted', async (context) => {
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
  const annotation = { 'm.relates_to': { rel_type: RelationType.Annotation, event_id, key: '🔥' } } as const;
  const reaction = await bob.client.sendEvent(room, EventType.Reaction, annotation);
  const reactionsFor = (session: Session) =>
    session.client
      .getRoom(room)
      ?.relations.getChildEventsForEvent(event_id, RelationType.Annotation, EventType.Reaction)
      ?.getSortedAnnotationsByKey()
      ?.map(([key, events]) => [key, events.size]);
  await eventually('the reaction', () => reactionsFor(alice)?.[0]?.[0] === '🔥');
  await assert.rejects(bob.client.sendEvent(room, EventType.Reaction, annotation), {
    errcode: 'M_DUPLICATE_ANNOTATION',
  });
  const later = await Session.ofLogin(server.url, bob.userId);
  context.after(() => later.stop());
  await later.room(room);
  const edited = await later.event(room, event_id);
  assert.equal(edited.getContent()['body'], 'Warm');
  assert.equal(edited.replacingEvent()?.getSender(), alice.userId);
  await bob.client.redactEvent(room, reaction.event_id);
  await eventually('no reaction', () => reactionsFor(alice)?.every(([, count]) => count === 0));
});

test('shows a thread with its own unread counts and receipts', async () => {
  const room = await sharedRoom();
  const root = await alice.client.sendTextMessage(room, 'What shall we burn?');
  await bob.event(room, root.event_id);
  for (const body of ['Oak', 'Ash']) {
    await bob.client.sendMessage(room, root.event_id, { msgtype: MsgType.Text, body });
  }
  const thread = await eventually('the thread', () => {
    const thread = alice.client.getRoom(room)?.getThread(root.event_id);
    return thread?.length === 2 && thread;
  });
  assert.equal(thread.replyToEvent?.getContent()['body'], 'Ash');
  const roomOfAlice = await alice.room(room);
  const unread = () => roomOfAlice.getThreadUnreadNotificationCount(root.event_id);
  await eventually('two unread answers', () => unread() === 2);
  const last = await eventually('the last answer', () => thread.lastReply());
  await alice.client.sendReadReceipt(last);
  await eventually('nothing unread in the thread', () => unread() === 0);
  const { chunk } = await alice.client.createThreadListMessagesRequest(room, null, 10);
  assert.deepEqual(
    chunk.map(({ event_id }) => event_id),
    [root.event_id],
  );
});

for (const version of ['11', '12']) {
  test(`lets a user knock on a room of version ${version}, and join by invite`, async () => {
    const { room_id } = await alice.client.createRoom({
      preset: Preset.PrivateChat,
      name: 'Behind the door',
      room_version: version,
      initial_state: [{ type: EventType.RoomJoinRules, content: { join_rule: JoinRule.Knock } }],
    });
    await alice.room(room_id);
    await bob.client.knockRoom(room_id, { reason: 'It is cold' });
    const knockedRoom = await bob.room(room_id, 'knock');
    assert.equal(knockedRoom.name, 'Behind the door');
    const knock = await eventually('the knock', () => {
      const member = alice.client.getRoom(room_id)?.getMember(bob.userId);
      return member?.membership === 'knock' && member;
    });
    assert.equal(knock.events.member?.getContent()['reason'], 'It is cold');
    await alice.client.invite(room_id, bob.userId);
    await bob.room(room_id, 'invite');
    await bob.client.joinRoom(room_id);
    await bob.room(room_id);
  });
}

for (const [from, to] of [
  ['10', '11'],
  ['11', '12'],
  ['12', '12'],
]) {
  test(`upgrades a room from version ${from} to ${to} and links both rooms`, async () => {
    const room = await sharedRoom({ room_version: from, topic: 'Wood', invite: [] });
    await alice.client.setPowerLevel(room, bob.userId, 25);
    const { replacement_room } = await alice.client.upgradeRoom(room, to!);
    const tombstone = () =>
      bob.client.getRoom(room)?.currentState.getStateEvents(EventType.RoomTombstone, '')?.getContent();
    await eventually('the tombstone', () => tombstone()?.['replacement_room'] === replacement_room);
    await bob.client.joinRoom(replacement_room);
    const replacement = await bob.room(replacement_room);
    assert.equal(replacement.getVersion(), to);
    assert.equal(replacement.findPredecessor()?.roomId, room);
    assert.equal(replacement.name, 'By the fire');
    const levels = await eventually('two members', () => {
      const [ofBob, ofAlice] = [bob.userId, alice.userId].map((userId) => replacement.getMember(userId));
      return ofBob && ofAlice ? { bob: ofBob.powerLevel, alice: ofAlice.powerLevel } : undefined;
    });
    assert.equal(levels.bob, 25);
    assert.equal(levels.alice, to === '12' ? Number.POSITIVE_INFINITY : 100);
    const visible = bob.client.getVisibleRooms().map(({ roomId }) => roomId);
    assert.deepEqual([visible.includes(room), visible.includes(replacement_room)], [false, true]);
    await assert.rejects(bob.client.sendTextMessage(room, 'still here'), { errcode: 'M_FORBIDDEN' });
  });
}

test('schedules, restarts, sends and cancels a delayed state event, and refuses a delay above the maximum', async () => {
  const room = await sharedRoom({
    power_level_content_override: { events: { 'org.example.call': 0 } },
  });
  const { client } = bob;
  const content = { left: true };
  const schedule = async (delay: number) =>
    (
      await client._unstable_sendDelayedStateEvent(
        room,
        { delay },
        'org.example.call' as never,
        content as never,
        bob.userId,
      )
    ).delay_id;
  const hasLeft = () =>
    alice.client.getRoom(room)?.currentState.getStateEvents('org.example.call', bob.userId)?.getContent()[
      'left'
    ];
  const delayId = await schedule(600_000);
  const waiting = await client._unstable_getDelayedEvent(delayId);
  assert.deepEqual([waiting.delay_ms, waiting.room_id, waiting.content], [600_000, room, content]);
  await client._unstable_restartScheduledDelayedEvent(delayId);
  const restarted = await client._unstable_getDelayedEvent(delayId);
  assert.ok(restarted.delayed_since_ts >= waiting.delayed_since_ts);
  assert.equal(hasLeft(), undefined);
  await client._unstable_sendScheduledDelayedEvent(delayId);
  await eventually('the end of the call', () => hasLeft() === true);
  const sent = await client._unstable_getDelayedEvent(delayId);
  assert.equal(typeof sent.finalised?.event_id, 'string');
  const cancelledId = await schedule(600_000);
  await client._unstable_cancelScheduledDelayedEvent(cancelledId);
  assert.deepEqual((await client._unstable_getDelayedEvents('scheduled')).scheduled, []);
  await client._unstable_updateDelayedEvent(cancelledId, 'cancel' as never);
  await assert.rejects(schedule(7_200_000), ({ data }: { data: Record<string, unknown> }) => {
    assert.equal(data['errcode'], 'M_UNKNOWN');
    assert.equal(data['org.matrix.msc4140.errcode'], 'M_MAX_DELAY_EXCEEDED');
    assert.equal(data['org.matrix.msc4140.max_delay'], 3_600_000);
    return true;
  });
});
