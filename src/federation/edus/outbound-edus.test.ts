import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { alice, bob, carol } from '../../../test/support/rooms/rooms.ts';
import type { Presence } from '../../presence/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { EphemeralEdu } from '../sender/edus/pending-edus.ts';
import { combine } from './receipt-edu-sender.ts';
import { dora, far, settle, startEdus } from './test/edus-under-test.ts';

forEachDatabase((open) => {
  describe('what other servers are told', () => {
    const contents = (sent: readonly { edu: EphemeralEdu }[], type: string) =>
      sent.filter(({ edu }) => edu.type === type).map(({ edu }) => edu.content);

    it('is who of the users here types, again while it goes on', async () => {
      const { typing, sent, roomId, clock, tellers } = await startEdus(open);
      typing.set(alice, roomId, true, 60_000);
      typing.set(dora, roomId, true, 60_000);
      await settle();
      const said = { room_id: roomId, user_id: alice, typing: true };
      assert.deepEqual(contents(sent, 'm.typing'), [said]);
      assert.deepEqual(sent[0]?.to.toSorted(), ['evil.example', far]);
      clock.advance(30_000);
      await settle();
      assert.deepEqual(contents(sent, 'm.typing'), [said, said]);
      clock.advance(30_000);
      await settle();
      assert.deepEqual(contents(sent, 'm.typing').at(-1), { ...said, typing: false });
      for (const teller of tellers) teller.stop();
    });

    it('is what users here have read, in so many transactions at most [option: federation_rr_transactions_per_room_per_second]', async () => {
      const { under, receipts, sent, roomId, clock } = await startEdus(open, { transactionsPerSecond: 4 });
      const events: string[] = [];
      for (let i = 0; i < 4; i++) events.push(await under.say(alice, roomId, String(i)));
      const read = async (userId: string, index: number, type: 'm.read' | 'm.read.private' = 'm.read') => {
        await receipts.give({ userId, roomId, type, eventId: events[index]!, threadId: undefined });
        await settle();
      };
      const told = () =>
        contents(sent, 'm.receipt').map((content) => {
          const users = (content[roomId] as { 'm.read': Record<string, { event_ids: string[] }> })['m.read'];
          return Object.entries(users).map(([userId, { event_ids: ids }]) => [
            userId,
            events.indexOf(ids[0]!),
          ]);
        });
      await read(alice, 0);
      assert.deepEqual(told(), [[[alice, 0]]]);
      await read(alice, 1);
      await read(bob, 1);
      await read(alice, 2);
      await read(alice, 3, 'm.read.private');
      assert.equal(told().length, 1);
      // Two servers, four transactions a second.
      clock.advance(499);
      await settle();
      assert.equal(told().length, 1);
      clock.advance(1);
      await settle();
      assert.deepEqual(told().slice(1), [[[alice, 2]], [[bob, 1]]]);
      clock.advance(500);
      await read(bob, 2);
      assert.deepEqual(told().at(-1), [[bob, 2]]);
    });

    it('is of each user and room one receipt to an EDU', () => {
      const of = (room: string, userId: string, thread: string) => ({
        [room]: { 'm.read': { [userId]: { data: { ts: 1, thread_id: thread }, event_ids: ['$e'] } } },
      });
      const combined = combine([
        of('!a', alice, '1'),
        of('!a', bob, '1'),
        of('!a', alice, '2'),
        of('!b', alice, '1'),
      ]);
      assert.deepEqual(combined, [
        {
          '!a': {
            'm.read': { ...of('!a', alice, '1')['!a']?.['m.read'], ...of('!a', bob, '1')['!a']?.['m.read'] },
          },
          ...of('!b', alice, '1'),
        },
        of('!a', alice, '2'),
      ]);
    });

    it('is who of the users here is online, without hurry, and to a server that comes to a room', async () => {
      const { under, presence, sent, roomId, clock } = await startEdus(open);
      presence.set({ userId: alice, deviceId: 'D' }, 'online', 'here');
      presence.set({ userId: carol, deviceId: 'D' }, 'online', undefined);
      await take(presence);
      clock.advance(1_000);
      await presence.announcements.settled();
      await settle();
      const online = sent.filter(({ edu }) => edu.type === 'm.presence');
      assert.deepEqual(
        online.map(({ edu }) => edu.key),
        [alice],
      );
      assert.deepEqual([online[0]?.to.toSorted(), online[0]?.lazy], [['evil.example', far], true]);
      const [update] = (online[0]?.edu.content['push'] ?? []) as JsonObject[];
      assert.deepEqual(
        [update?.['user_id'], update?.['presence'], update?.['status_msg']],
        [alice, 'online', 'here'],
      );
      await under.join('@new:late.example', roomId);
      await settle();
      assert.deepEqual(sent.at(-1)?.to, ['late.example']);
      assert.equal(sent.at(-1)?.edu.key, alice);
      await presence.stop();
    });

    /** What another server has said is not passed on. */
    const take = async (presence: Presence) =>
      presence.report(dora, {
        presence: 'online',
        statusMsg: undefined,
        lastActive: 0,
        currentlyActive: true,
      });
  });
});
