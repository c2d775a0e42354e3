import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, carol } from '../../../test/support/rooms/rooms.ts';
import { putRule, setRuleEnabled } from '../../protocol/index.ts';
import { ignoring, openUnread, unreadOver } from '../test/unread-under-test.ts';
import { EventNotifications } from './event-notifications.ts';
import type { PushEvaluation } from './push-evaluation.ts';

const dave = '@dave:test';
const mention = (userId: string) => ({ 'm.mentions': { user_ids: [userId] } });

forSelectedDatabases(import.meta.url, (open) => {
  describe('EventNotifications', () => {
    it('returns the users whom a message notifies, with the actions of the rule that matched', async () => {
      const { fixture, roomId, notified, rules, unread } = await openUnread(open);
      await rules.change(carol, (stored) => setRuleEnabled(stored, 'underride', '.m.rule.message', false));
      const plain = await fixture.say(alice, roomId, 'hello');
      const mentioning = await fixture.say(alice, roomId, 'you two', mention(bob));
      const notice = await fixture.send(alice, roomId, 'm.room.message', { msgtype: 'm.notice', body: 'n' });
      assert.deepEqual(await notified(plain, alice, bob, carol, dave), [bob]);
      assert.deepEqual(await notified(mentioning, alice, bob, carol), [`${bob}!`]);
      assert.deepEqual(await notified(notice, bob, carol), []);
      assert.equal((await unread.counts(bob, roomId, fixture.streams.current)).highlight_count, 1);
    });

    it('notifies no user of redacted events, events of ignored users, read events and dummy events', async () => {
      const { fixture, roomId, notified, read, rules } = await openUnread(open, { ignored: ignoring(carol) });
      const alwaysNotify = { actions: ['notify'] };
      await rules.change(bob, (stored) => putRule(stored, 'override', 'all', alwaysNotify));
      const redacted = await fixture.say(alice, roomId, 'one');
      assert.deepEqual(await notified(redacted, bob), [bob]);
      await fixture.redact(alice, roomId, redacted);
      assert.deepEqual(await notified(redacted, bob), []);
      assert.deepEqual(await notified(await fixture.say(carol, roomId, 'two'), bob), []);
      const dummy = await fixture.send(alice, roomId, 'org.matrix.dummy_event', {});
      assert.deepEqual(await notified(dummy, bob), []);
      const root = await fixture.say(alice, roomId, 'root');
      const reply = await fixture.reply(alice, roomId, root);
      assert.deepEqual(await notified(reply, bob), [bob]);
      await read(bob, roomId, root, 'main');
      assert.deepEqual([await notified(root, bob), await notified(reply, bob)], [[], [bob]]);
      await read(bob, roomId, reply, root);
      assert.deepEqual(await notified(reply, bob), []);
    });

    it('does not notify a user of a pending event when the user has since sent an event in the same thread', async () => {
      const { fixture, roomId, eventNotifications } = await openUnread(open);
      const pending = async (eventId: string) => {
        const stored = await fixture.engine.events.getById(eventId);
        return (await eventNotifications.ofPending(stored!, bob)) !== undefined;
      };
      const bobsEvent = await fixture.say(bob, roomId, 'own');
      const first = await fixture.say(alice, roomId, 'first');
      const reply = await fixture.reply(alice, roomId, first);
      assert.deepEqual([await pending(first), await pending(reply)], [true, true]);
      await fixture.say(carol, roomId, 'of another user');
      await fixture.redact(bob, roomId, bobsEvent);
      assert.deepEqual([await pending(first), await pending(reply)], [true, true]);
      await fixture.reply(bob, roomId, first);
      assert.deepEqual([await pending(first), await pending(reply)], [true, false]);
      await fixture.say(bob, roomId, 'an answer');
      const later = await fixture.say(alice, roomId, 'later');
      assert.deepEqual([await pending(first), await pending(later)], [false, true]);
    });

    it('notifies no users who joined after the event or have left since', async () => {
      const { fixture, roomId, notified } = await openUnread(open);
      const before = await fixture.say(alice, roomId, 'before');
      await fixture.join(dave, roomId);
      const after = await fixture.say(alice, roomId, 'after');
      assert.deepEqual(await notified(before, bob, dave), [bob]);
      assert.deepEqual(await notified(after, bob, dave), [bob, dave]);
      await fixture.leave(bob, roomId);
      await fixture.join(bob, roomId);
      await fixture.leave(dave, roomId);
      assert.deepEqual(await notified(after, bob, dave), []);
    });

    it('notifies the user whom an event invites, unless the user blocks or ignores the inviter or has rejected the invite', async () => {
      const { fixture, notified } = await openUnread(open);
      const roomId = await fixture.rooms.creation.create(alice, { invite: [dave] });
      const { eventNid } = (await fixture.engine.userRooms.of(dave)).get(roomId)!;
      const { eventId } = (await fixture.engine.events.get(eventNid))!.event;
      assert.deepEqual(await notified(eventId, alice, bob, dave), [dave]);
      for (const blocking of [
        { invitePolicy: { decide: async () => 'ignore' as const } },
        { ignored: ignoring(alice) },
      ]) {
        assert.deepEqual(await unreadOver(fixture, blocking).notified(eventId, dave), []);
      }
      await fixture.leave(dave, roomId);
      assert.deepEqual(await notified(eventId, dave), []);
    });

    it('rejects when the data of users cannot be read, and leaves no rejection unhandled', async () => {
      const { fixture, roomId } = await openUnread(open);
      const { engine } = fixture;
      const stored = await engine.events.getById(await fixture.say(alice, roomId, 'hello'));
      assert.ok(stored);
      let now = 0;
      const clock = { ...fixture.clock, monotonic: () => (now += 1_000) };
      const evaluation = {
        events: { get: async () => ({ threadId: undefined }) },
        members: { of: () => Promise.reject(new Error('The database is down')) },
      } as unknown as PushEvaluation;
      const invitePolicy = { decide: async () => 'allow' as const };
      const deps = { engine, clock, evaluation, invitePolicy, enabled: true };
      // The clock makes the evaluation pause after each user, so that reading fails before the results are awaited.
      await assert.rejects(new EventNotifications(deps).of(stored, [bob, carol]), /The database is down/);
    });

    it('notifies no user when push is off [option: push.enabled]', async () => {
      const { fixture, roomId, notified, badge } = await openUnread(open, { enabled: false });
      assert.deepEqual(await notified(await fixture.say(alice, roomId, 'hello'), bob), []);
      assert.equal(await badge(bob), 0);
    });
  });
});
