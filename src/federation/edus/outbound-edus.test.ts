import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, carol } from '../../../test/support/rooms/rooms.ts';
import type { Presence } from '../../presence/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { EphemeralEdu } from '../sender/edus/pending-edus.ts';
import { combine } from './receipt-edu-sender.ts';
import { dora, remoteServer, startEdus, untilIdle } from './test/edus-under-test.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('EDUs to other servers', () => {
    const contents = (sent: readonly { edu: EphemeralEdu }[], type: string) =>
      sent.filter(({ edu }) => edu.type === type).map(({ edu }) => edu.content);

    it('sends typing notifications of local users, and repeats them while the users type', async () => {
      const { typing, sent, roomId, clock, senders } = await startEdus(open);
      typing.set(alice, roomId, true, 60_000);
      typing.set(dora, roomId, true, 60_000);
      await untilIdle();
      const expected = { room_id: roomId, user_id: alice, typing: true };
      assert.deepEqual(contents(sent, 'm.typing'), [expected]);
      assert.deepEqual(sent[0]?.to.toSorted(), ['evil.example', remoteServer]);
      clock.advance(30_000);
      await untilIdle();
      assert.deepEqual(contents(sent, 'm.typing'), [expected, expected]);
      clock.advance(30_000);
      await untilIdle();
      assert.deepEqual(contents(sent, 'm.typing').at(-1), { ...expected, typing: false });
      for (const sender of senders) sender.stop();
    });

    it('limits the rate of receipt transactions per room [option: federation_rr_transactions_per_room_per_second]', async () => {
      const { fixture, receipts, sent, roomId, clock } = await startEdus(open, { transactionsPerSecond: 4 });
      const events: string[] = [];
      for (let i = 0; i < 4; i++) events.push(await fixture.say(alice, roomId, String(i)));
      const read = async (userId: string, index: number, type: 'm.read' | 'm.read.private' = 'm.read') => {
        await receipts.send({ userId, roomId, type, eventId: events[index]!, threadId: undefined });
        await untilIdle();
      };
      const sentReceipts = () =>
        contents(sent, 'm.receipt').map((content) => {
          const users = (content[roomId] as { 'm.read': Record<string, { event_ids: string[] }> })['m.read'];
          return Object.entries(users).map(([userId, { event_ids: ids }]) => [
            userId,
            events.indexOf(ids[0]!),
          ]);
        });
      await read(alice, 0);
      assert.deepEqual(sentReceipts(), [[[alice, 0]]]);
      await read(alice, 1);
      await read(bob, 1);
      await read(alice, 2);
      await read(alice, 3, 'm.read.private');
      assert.equal(sentReceipts().length, 1);
      // Two servers and four transactions per second: one transaction to each server takes 500 ms.
      clock.advance(499);
      await untilIdle();
      assert.equal(sentReceipts().length, 1);
      clock.advance(1);
      await untilIdle();
      assert.deepEqual(sentReceipts().slice(1), [[[alice, 2]], [[bob, 1]]]);
      clock.advance(500);
      await read(bob, 2);
      assert.deepEqual(sentReceipts().at(-1), [[bob, 2]]);
    });

    it('combines receipts so that an EDU has one receipt per room and user', () => {
      const receiptContent = (room: string, userId: string, thread: string) => ({
        [room]: { 'm.read': { [userId]: { data: { ts: 1, thread_id: thread }, event_ids: ['$e'] } } },
      });
      const combined = combine([
        receiptContent('!a', alice, '1'),
        receiptContent('!a', bob, '1'),
        receiptContent('!a', alice, '2'),
        receiptContent('!b', alice, '1'),
      ]);
      assert.deepEqual(combined, [
        {
          '!a': {
            'm.read': {
              ...receiptContent('!a', alice, '1')['!a']?.['m.read'],
              ...receiptContent('!a', bob, '1')['!a']?.['m.read'],
            },
          },
          ...receiptContent('!b', alice, '1'),
        },
        receiptContent('!a', alice, '2'),
      ]);
    });

    it('sends presence of local users as EDUs that may be delayed (lazy), and also to a server that joins a room', async () => {
      const { fixture, presence, sent, roomId, clock } = await startEdus(open);
      presence.set({ userId: alice, deviceId: 'D' }, 'online', 'here');
      presence.set({ userId: carol, deviceId: 'D' }, 'online', undefined);
      await reportRemotePresence(presence);
      clock.advance(1_000);
      await presence.announcements.idle();
      await untilIdle();
      const online = sent.filter(({ edu }) => edu.type === 'm.presence');
      assert.deepEqual(
        online.map(({ edu }) => edu.key),
        [alice],
      );
      assert.deepEqual([online[0]?.to.toSorted(), online[0]?.lazy], [['evil.example', remoteServer], true]);
      const [update] = (online[0]?.edu.content['push'] ?? []) as JsonObject[];
      assert.deepEqual(
        [update?.['user_id'], update?.['presence'], update?.['status_msg']],
        [alice, 'online', 'here'],
      );
      await fixture.join('@new:late.example', roomId);
      await untilIdle();
      assert.deepEqual(sent.at(-1)?.to, ['late.example']);
      assert.equal(sent.at(-1)?.edu.key, alice);
      await presence.stop();
    });

    it('sends last_active_ago also for a user whose only activity is the change of their presence', async () => {
      const { presence, sent, clock } = await startEdus(open);
      presence.set({ userId: alice, deviceId: 'D' }, 'unavailable', 'away');
      clock.advance(1_000);
      await presence.announcements.idle();
      await untilIdle();
      const update = { user_id: alice, presence: 'unavailable', status_msg: 'away', last_active_ago: 0 };
      assert.deepEqual(contents(sent, 'm.presence'), [{ push: [update] }]);
      await presence.stop();
    });

    /** Reports presence of a remote user, which must not be sent to other servers. */
    const reportRemotePresence = async (presence: Presence) =>
      presence.report(dora, {
        presence: 'online',
        statusMsg: undefined,
        lastActive: 0,
        currentlyActive: true,
      });
  });
});
