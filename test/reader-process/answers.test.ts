import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PresenceState } from '../../src/presence/index.ts';
import type { JsonObject } from '../../src/protocol/index.ts';
import { ClientDevice } from '../support/users/client-device.ts';
import { alice, bob, carol, deviceId, message, send, TwoProcesses } from './two-processes.ts';

describe('a reader process', () => {
  it('answers syncs word for word like the main process after changes of rooms, receipts, typing, account data and push rules', async () => {
    const processes = await new TwoProcesses().open();
    try {
      const { writer } = processes;
      const { rooms, users, conversations } = writer;
      await processes.assertAlike('before anything');
      const roomId = await rooms.creation.create(alice, { preset: 'public_chat', name: 'Hearth' });
      await processes.assertAlike('a room');
      await rooms.memberships.join(bob, roomId);
      await processes.assertAlike('a join');
      await rooms.memberships.invite(alice, roomId, carol);
      await processes.assertAlike('an invite');
      const first = await send(writer, alice, roomId, message('hello bob'));
      await processes.assertAlike('a message');
      processes.clock.advance(1_000);
      await send(
        writer,
        bob,
        roomId,
        message('* hello', {
          'm.new_content': message('hello alice'),
          'm.relates_to': { rel_type: 'm.replace', event_id: first },
        }),
      );
      const reply = await send(
        writer,
        bob,
        roomId,
        message('in a thread', {
          'm.relates_to': { rel_type: 'm.thread', event_id: first },
        }),
      );
      await processes.assertAlike('a thread');
      await send(
        writer,
        alice,
        roomId,
        { 'm.relates_to': { rel_type: 'm.annotation', event_id: reply, key: 'x' } },
        'm.reaction',
      );
      await processes.assertAlike('a reaction');
      const sender = { userId: alice, deviceId };
      await rooms.sending.state(sender, roomId, { type: 'm.room.topic', stateKey: '' }, { topic: 'news' });
      await processes.assertAlike('a state event');
      await rooms.sending.redact({ userId: bob, deviceId }, roomId, reply, {}, 'redaction');
      await processes.assertAlike('a redaction');
      await conversations.receipts.send({
        userId: bob,
        roomId,
        eventId: first,
        type: 'm.read',
        threadId: undefined,
      });
      await processes.assertAlike('a receipt');
      conversations.typing.set(alice, roomId, true, 30_000);
      await processes.assertAlike('typing');
      conversations.typing.set(alice, roomId, false, 0);
      await processes.assertAlike('no typing');
      await users.accountData.set({ userId: alice, roomId: undefined, type: 'org.example' }, { a: 1 });
      await users.accountData.set({ userId: alice, roomId, type: 'm.tag' }, { tags: { 'm.favourite': {} } });
      await processes.assertAlike('account data');
      await users.pushRules.change(bob, (rules) => rules);
      await processes.assertAlike('push rules');
      await users.accountData.set(
        { userId: bob, roomId: undefined, type: 'm.ignored_user_list' },
        { ignored_users: { [alice]: {} } },
      );
      await send(writer, alice, roomId, message('not for bob'));
      await processes.assertAlike('ignored users');
      await rooms.memberships.join(carol, roomId);
      await send(writer, carol, roomId, message('here I am'));
      await processes.assertAlike('an accepted invite');
      await rooms.memberships.kick(alice, roomId, bob);
      await processes.assertAlike('a kick');
      const secondRoom = await rooms.creation.create(bob, { preset: 'private_chat', invite: [carol] });
      for (let number = 0; number < 15; number++) await send(writer, bob, secondRoom, message(`${number}`));
      await processes.assertAlike('a second room with more than one page');
      await rooms.memberships.leave(carol, secondRoom);
      await rooms.memberships.leave(carol, roomId);
      await processes.assertAlike('left rooms');
      assert.ok(processes.answerCount > 100);
    } finally {
      await processes.shutdown.run();
    }
  });

  it('answers syncs word for word like the main process after changes of devices, keys, to-device messages, thread subscriptions and presence, and in long polls', async () => {
    const processes = await new TwoProcesses().open();
    try {
      const { writer, clock } = processes;
      const { rooms, users, toDevice, e2ee, conversations } = writer;
      const roomId = await rooms.creation.create(alice, { preset: 'public_chat' });
      const inRoom = [alice, bob];
      await processes.assertAlike('a room');
      await processes.assertAwakes('a join', inRoom, () => rooms.memberships.join(bob, roomId));
      const root = await send(writer, alice, roomId, message('the root'));
      await processes.assertAwakes('a message', inRoom, () => send(writer, bob, roomId, message('hello')));
      const device = (userId: string, id = deviceId) =>
        users.accounts.devices.create({ userId, deviceId: id, displayName: undefined });
      for (const userId of inRoom) {
        await processes.assertAwakes('a new device', inRoom, () => device(userId));
      }
      const client = new ClientDevice(alice, deviceId);
      const upload = (body: JsonObject) => e2ee.upload.upload(alice, deviceId, body);
      await upload({ device_keys: client.deviceKeys() });
      await processes.assertAlike('device keys');
      await processes.assertAwakes('one-time keys', [alice], () =>
        upload({ one_time_keys: client.oneTimeKeys(5) }),
      );
      await processes.assertAwakes('a fallback key', [alice], () =>
        upload({ fallback_keys: client.oneTimeKeys(1, 9, { fallback: true }) }),
      );
      const claimed = new Map([[alice, new Map([[deviceId, 'signed_curve25519']])]]);
      for (let claim = 0; claim < 6; claim++) {
        await processes.assertAwakes('a claimed key', [alice], () => e2ee.claiming.claim(claimed, 0));
      }
      for (const body of ['first', 'second']) {
        await processes.assertAwakes('a to-device message', [alice], () =>
          toDevice.send({
            sender: bob,
            origin: { name: bob, deviceId },
            txnId: body,
            type: 'org.example',
            messages: new Map([[alice, new Map([[deviceId, { body }]])]]),
          }),
        );
      }
      await processes.assertAlike('acknowledged to-device messages');
      const thread = { userId: alice, roomId, rootId: root };
      await processes.assertAwakes(
        'a thread subscription',
        [alice],
        () => conversations.threads.subscribe(thread),
        ['sliding'],
      );
      await send(
        writer,
        bob,
        roomId,
        message('in it', { 'm.relates_to': { rel_type: 'm.thread', event_id: root } }),
      );
      await processes.assertAlike('a message in a followed thread');
      await processes.assertAwakes(
        'the end of a thread subscription',
        [alice],
        () => conversations.threads.unsubscribe(thread),
        ['sliding'],
      );
      const { presence } = conversations;
      const announced = async () => {
        clock.advance(1_000);
        await presence.announcements.idle();
      };
      const setPresence = async (state: PresenceState, status?: string) => {
        presence.set({ userId: alice, deviceId }, state, status);
        await announced();
      };
      await processes.assertAwakes('presence', inRoom, () => setPresence('online', 'here'), ['classic']);
      assert.match(await processes.presenceIn(processes.reader.conversations, bob), /"status_msg":"here"/);
      await processes.assertAwakes('another status', inRoom, () => setPresence('unavailable', 'away'), [
        'classic',
      ]);
      await rooms.memberships.join(carol, roomId);
      await processes.assertAlike('a join of a user who sees the presence of the others');
      clock.advance(60_000);
      await announced();
      await processes.assertAlike('a user who went offline');
      const roomOfCarol = await rooms.creation.create(carol, { preset: 'public_chat' });
      await rooms.memberships.join(bob, roomOfCarol);
      await rooms.memberships.leave(carol, roomId);
      await rooms.memberships.join(carol, roomId);
      await processes.assertAlike('a join of a user who sees the last status of users who are offline');
      await users.accounts.devices.remove(alice, [deviceId]);
      await processes.assertAlike('a deleted device');
    } finally {
      await processes.shutdown.run();
    }
  });

  it('a reader process rejects writes with an error, and has no methods that add events', async () => {
    const processes = await new TwoProcesses().open();
    try {
      const { users, kernel } = processes.reader;
      await assert.rejects(
        users.accountData.set({ userId: alice, roomId: undefined, type: 'org.example' }, {}),
        /does not write/,
      );
      assert.throws(() => kernel.streams.reserving(() => undefined), /does not write/);
      assert.ok(!('timeline' in processes.reader.rooms.engine));
    } finally {
      await processes.shutdown.run();
    }
  });
});
