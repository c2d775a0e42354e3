import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, carol } from '../../../test/support/rooms/rooms.ts';
import { putRule, setRuleEnabled } from '../../protocol/index.ts';
import type { PushTables } from '../tables.ts';
import { markList, marksIn } from '../test/marks.ts';
import { ignoring, openUnread, savedTally, unreadFromDisk, unreadOver } from '../test/unread-under-test.ts';
import { MarkList } from './mark-list.ts';
import { saveTallies } from './store.ts';
import { Tally } from './tally.ts';

const mention = (userId: string) => ({ 'm.mentions': { user_ids: [userId] } });

forSelectedDatabases(import.meta.url, (open) => {
  describe('unread counts', () => {
    it('counts notifying events and highlights, and resets the counts at a receipt', async () => {
      const { fixture, roomId, counts, read } = await openUnread(open);
      assert.equal(await counts(bob, roomId), '0/0 0/0');
      await fixture.say(alice, roomId, 'one');
      await fixture.say(alice, roomId, 'two', mention(bob));
      await fixture.send(alice, roomId, 'm.room.message', { msgtype: 'm.notice', body: 'no' });
      assert.equal(await counts(bob, roomId), '2/1 2/1');
      assert.equal(await counts(carol, roomId), '2/0 2/0');
      assert.equal(await counts(alice, roomId), '0/0 0/0');
      const third = await fixture.say(alice, roomId, 'three');
      await fixture.say(alice, roomId, 'four');
      assert.equal(await counts(bob, roomId), '4/1 4/1');
      await read(bob, roomId, third);
      assert.equal(await counts(bob, roomId), '1/0 1/0');
    });

    it('counts unread events of each thread separately', async () => {
      const { fixture, roomId, counts, read } = await openUnread(open);
      const root = await fixture.say(alice, roomId, 'root');
      const otherRoot = await fixture.say(alice, roomId, 'other root');
      const reply = await fixture.reply(alice, roomId, root);
      await fixture.reply(alice, roomId, root);
      await fixture.reply(carol, roomId, otherRoot);
      assert.equal(await counts(bob, roomId), '5/0 2/0 1/0 2/0');
      await read(bob, roomId, reply, root);
      assert.equal(await counts(bob, roomId), '4/0 2/0 1/0 1/0');
      await read(bob, roomId, otherRoot, 'main');
      assert.equal(await counts(bob, roomId), '2/0 0/0 1/0 1/0');
      await read(bob, roomId, await fixture.say(alice, roomId, 'last'));
      assert.equal(await counts(bob, roomId), '0/0 0/0');
    });

    it('resets the counts of a thread when the user sends an event in it', async () => {
      const { fixture, roomId, counts } = await openUnread(open);
      const root = await fixture.say(alice, roomId, 'root');
      await fixture.reply(alice, roomId, root);
      assert.equal(await counts(bob, roomId), '2/0 1/0 1/0');
      await fixture.say(bob, roomId, 'mine');
      assert.equal(await counts(bob, roomId), '1/0 0/0 1/0');
      await fixture.say(alice, roomId, 'more');
      await fixture.reply(bob, roomId, root);
      assert.equal(await counts(bob, roomId), '1/0 1/0');
    });

    it('excludes messages that expire after they were counted, by the times of sending in the tally', async () => {
      const policy = { default_policy: { max_lifetime: 60_000 }, allowed_lifetime_min: null };
      const options = { retention: { ...policy, enabled: true, allowed_lifetime_max: null } };
      const { fixture, roomId, counts } = await openUnread(open, {}, { options });
      await fixture.say(alice, roomId, 'one', mention(bob));
      fixture.clock.advance(40_000);
      await fixture.say(alice, roomId, 'two');
      assert.equal(await counts(bob, roomId), '2/1 2/1');
      fixture.clock.advance(30_000);
      assert.equal(await counts(bob, roomId), '1/0 1/0');
      fixture.clock.advance(30_001);
      assert.equal(await counts(bob, roomId), '0/0 0/0');
      const marks = [{ stream: 1, highlight: true, threadId: '$root', sentTs: 7 }];
      const tally = new Tally(fixture.streams.current, markList(marks));
      await saveTallies(fixture.database, [{ userId: carol, roomId, tally }]);
      const stored = await savedTally(fixture.database, carol, roomId);
      assert.deepEqual(marksIn(stored), marks);
    });

    it('evaluates the events again if the tally was saved without times while retention was off, so that expired messages do not count', async () => {
      const policy = { default_policy: { max_lifetime: 60_000 }, allowed_lifetime_min: null };
      const options = { retention: { ...policy, enabled: true, allowed_lifetime_max: null } };
      const { fixture, roomId } = await openUnread(open, {}, { options });
      await fixture.say(alice, roomId, 'expired');
      fixture.clock.advance(61_000);
      await fixture.say(alice, roomId, 'new');
      const withoutTimes = new MarkList(false);
      for (const stream of [fixture.streams.current - 1, fixture.streams.current])
        withoutTimes.push({ stream, highlight: false, threadId: undefined, sentTs: 0 });
      const tally = new Tally(fixture.streams.current, withoutTimes);
      await saveTallies(fixture.database, [{ userId: bob, roomId, tally }]);
      const { counts } = unreadOver(fixture);
      assert.equal(await counts(bob, roomId), '1/0 1/0');
      await fixture.say(alice, roomId, 'newer');
      assert.equal(await counts(bob, roomId), '2/0 2/0');
      fixture.clock.advance(61_000);
      assert.equal(await counts(bob, roomId), '0/0 0/0');
    });

    it('reads unread events that an earlier version of the server has saved', async () => {
      const { fixture, roomId } = await openUnread(open);
      const marks = JSON.stringify([
        [3, 1],
        [4, 0, '$root', null],
        [5, 0, null, 7],
      ]);
      const row = { user_id: carol, room_id: roomId, up_to: 6, marks };
      await fixture.database.transaction<PushTables, unknown>((writer) =>
        writer.insertInto('unread_tallies').values(row).execute(),
      );
      const tally = await savedTally(fixture.database, carol, roomId);
      assert.equal(tally.upTo, 6);
      const unknown = { sentTs: Number.POSITIVE_INFINITY };
      assert.deepEqual(marksIn(tally), [
        { stream: 3, highlight: true, threadId: undefined, ...unknown },
        { stream: 4, highlight: false, threadId: '$root', ...unknown },
        { stream: 5, highlight: false, threadId: undefined, sentTs: 7 },
      ]);
    });

    it('excludes events that were redacted before or after they were counted', async () => {
      const { fixture, roomId, counts } = await openUnread(open);
      const first = await fixture.say(alice, roomId, 'one', mention(bob));
      const second = await fixture.say(alice, roomId, 'two');
      await fixture.redact(alice, roomId, second);
      assert.equal(await counts(bob, roomId), '1/1 1/1');
      await fixture.redact(alice, roomId, first);
      assert.equal(await counts(bob, roomId), '0/0 0/0');
    });

    it('counts from zero after each join, but not after a new display name', async () => {
      const { fixture, roomId, counts } = await openUnread(open);
      await fixture.say(alice, roomId, 'one');
      assert.equal(await counts(bob, roomId), '1/0 1/0');
      await fixture.rooms.sending.state(
        { userId: bob, deviceId: undefined },
        roomId,
        { type: 'm.room.member', stateKey: bob },
        { membership: 'join', displayname: 'Bob' },
      );
      assert.equal(await counts(bob, roomId), '1/0 1/0');
      await fixture.leave(bob, roomId);
      assert.equal(await counts(bob, roomId), '0/0 0/0');
      await fixture.say(alice, roomId, 'two');
      await fixture.join(bob, roomId);
      assert.equal(await counts(bob, roomId), '0/0 0/0');
      await fixture.say(alice, roomId, 'three');
      assert.equal(await counts(bob, roomId), '1/0 1/0');
    });

    it('counts events by the push rules of the user, the size of the room, and the power level that mentions of the whole room require', async () => {
      const { fixture, roomId, counts, rules } = await openUnread(open);
      await rules.change(bob, (stored) => setRuleEnabled(stored, 'underride', '.m.rule.message', false));
      await fixture.say(alice, roomId, 'hello');
      await fixture.say(alice, roomId, 'all', { 'm.mentions': { room: true } });
      await fixture.say(carol, roomId, 'all', { 'm.mentions': { room: true } });
      assert.equal(await counts(bob, roomId), '1/1 1/1');
      const pair = await fixture.room(alice, bob);
      await fixture.say(alice, pair, 'you');
      assert.equal(await counts(bob, pair), '1/0 1/0');
    });

    it('excludes events of ignored users, and counts nothing when push is off', async () => {
      const { fixture, roomId, counts } = await openUnread(open, { ignored: ignoring(alice) });
      await fixture.say(alice, roomId, 'one');
      await fixture.say(carol, roomId, 'two');
      assert.equal(await counts(bob, roomId), '1/0 1/0');
      const pushOff = unreadOver(fixture, { enabled: false });
      assert.equal(await pushOff.counts(bob, roomId), '0/0 0/0');
      assert.equal((await pushOff.unread.counts(bob, roomId, 0)).notification_count, 0);
    });

    it('returns counts without a promise while the room has no new events', async () => {
      const { fixture, roomId, unread, counts, read } = await openUnread(open);
      const { streams } = fixture;
      /** The counts if they are returned at once, without a promise. */
      const countsAtOnce = () => {
        const result = unread.counts(bob, roomId, streams.current);
        return result instanceof Promise ? undefined : result.notification_count;
      };
      const first = await fixture.say(alice, roomId, 'one');
      await fixture.say(alice, roomId, 'two');
      assert.equal(countsAtOnce(), undefined);
      await counts(bob, roomId);
      await fixture.say(alice, await fixture.room(alice), 'elsewhere');
      assert.equal(countsAtOnce(), 2);
      await read(bob, roomId, first);
      assert.equal(countsAtOnce(), 1);
      await fixture.say(alice, roomId, 'three');
      assert.equal(countsAtOnce(), undefined);
      assert.equal((await unread.counts(bob, roomId, streams.current)).notification_count, 2);
    });

    it('needs no query for clients that sync regularly, and writes nothing', async () => {
      const { fixture, roomId, counts } = await openUnread(open);
      for (const userId of [bob, carol]) await counts(userId, roomId);
      await fixture.say(alice, roomId, 'one');
      for (const userId of [bob, carol]) await counts(userId, roomId);
      await fixture.say(alice, roomId, 'two');
      const before = { ...fixture.database.statistics };
      for (const userId of [bob, carol]) assert.equal(await counts(userId, roomId), '2/0 2/0');
      assert.deepEqual({ ...fixture.database.statistics }, before);
    });

    it('evaluates at most a thousand events for a user who was away, and processes other requests in between', async () => {
      const { fixture, roomId, counts } = await openUnread(open);
      await fixture.say(alice, roomId, 'you', mention(bob));
      await Promise.all(Array.from({ length: 2_000 }, () => fixture.say(alice, roomId, 'x')));
      let turns = 0;
      let isCounting = true;
      const takeTurn = () => {
        turns++;
        if (isCounting) setImmediate(takeTurn);
      };
      setImmediate(takeTurn);
      assert.equal(await counts(bob, roomId), '1000/0 1000/0');
      isCounting = false;
      assert.ok(turns >= 5, `${turns} turns`);
      await fixture.say(alice, roomId, 'you', mention(bob));
      assert.equal(await counts(bob, roomId), '1000/1 1000/1');
    });

    it('evaluates fewer events when the push rules of the user take many steps, and processes other requests in between', async () => {
      const { fixture, roomId, counts, rules } = await openUnread(open);
      await rules.change(bob, (stored) => {
        const patterns = Array.from({ length: 40 }, (_, index) => `*a*${index}*b`);
        return patterns.reduce(
          (changed, pattern) => putRule(changed, 'content', pattern, { pattern, actions: ['notify'] }),
          stored,
        );
      });
      await Promise.all(Array.from({ length: 30 }, () => fixture.say(alice, roomId, 'a'.repeat(50_000))));
      let turns = 0;
      let isCounting = true;
      const takeTurn = () => {
        turns++;
        if (isCounting) setImmediate(takeTurn);
      };
      setImmediate(takeTurn);
      // An event takes a million steps, and one count eight million.
      assert.equal(await counts(bob, roomId), '9/0 9/0');
      isCounting = false;
      assert.ok(turns >= 8, `${turns} turns`);
    });

    it('evaluates a thousand events for a user who was away and sends a receipt, then only new events, and after a restart only unsaved events', async () => {
      const { fixture, roomId, unread, counts, read } = await openUnread(open);
      const first = await fixture.say(alice, roomId, 'first');
      await Promise.all(Array.from({ length: 3_000 }, () => fixture.say(alice, roomId, 'x')));
      const evaluatedBy = async (work: () => Promise<unknown>, tested = unread) => {
        const before = tested.evaluatedEvents;
        await work();
        return tested.evaluatedEvents - before;
      };
      const readThenCount = async () => {
        await read(bob, roomId, first);
        assert.equal(await counts(bob, roomId), '1000/0 1000/0');
      };
      assert.equal(await evaluatedBy(readThenCount), 1_000);
      fixture.clock.advance(1_000);
      const stored = () => savedTally(fixture.database, bob, roomId);
      await eventually('the tally', async () => (await stored()).upTo === fixture.streams.current);
      const notify = async () => {
        await fixture.say(alice, roomId, 'you', mention(bob));
        assert.equal(await counts(bob, roomId), '1000/1 1000/1');
      };
      assert.equal(await evaluatedBy(notify), 1);
      const restarted = await fixture.restart(open);
      const later = unreadOver(restarted);
      assert.equal(await evaluatedBy(() => later.counts(bob, roomId), later.unread), 1);
      assert.equal(await evaluatedBy(() => later.counts(carol, roomId), later.unread), 1_000);
    });

    it('answers concurrent requests with the counts before or after an event that arrives meanwhile', async () => {
      const { fixture, roomId, counts } = await openUnread(open);
      for (let index = 0; index < 5; index++) await fixture.say(alice, roomId, 'x');
      const requests = [1, 2, 3].map(() => counts(bob, roomId));
      await fixture.say(alice, roomId, 'y');
      assert.equal(await counts(bob, roomId), '6/0 6/0');
      for (const answer of await Promise.all(requests)) assert.match(answer, /^[56]\/0/);
    });

    it('saves tallies after many events, and continues from them after a restart', async () => {
      const { fixture, roomId, unread, counts } = await openUnread(open);
      const sent = Array.from({ length: 250 }, () => fixture.say(alice, roomId, 'x'));
      await Promise.all(sent);
      assert.equal(await counts(bob, roomId), '250/0 250/0');
      await unread.stop();
      const saved = await savedTally(fixture.database, bob, roomId);
      assert.deepEqual([saved.upTo, saved.size], [fixture.streams.current, 250]);
      const restarted = await fixture.restart(open);
      await restarted.say(alice, roomId, 'y', mention(bob));
      const later = unreadOver(restarted);
      assert.equal(await later.counts(bob, roomId), '251/1 251/1');
      assert.equal(await later.counts(carol, roomId), '251/0 251/0');
    });

    it('reads old events without caching them, and saves the tally soon, so that no event is evaluated again after a restart', async () => {
      const { fixture, roomId } = await openUnread(open);
      const sent = await Promise.all(Array.from({ length: 60 }, () => fixture.say(alice, roomId, 'x')));
      const reply = await fixture.reply(alice, roomId, sent[0]!);
      const first = unreadFromDisk(fixture);
      assert.equal(await first.counts(bob, roomId), '61/0 60/0 1/0');
      const cached = [...sent, reply].filter((eventId) => first.engine.events.peekById(eventId));
      assert.deepEqual(cached, []);
      fixture.clock.advance(1_000);
      await first.unread.stop();
      const saved = await savedTally(fixture.database, bob, roomId);
      assert.deepEqual([saved.upTo, saved.size], [fixture.streams.current, 61]);
      const second = unreadFromDisk(fixture);
      assert.equal(await second.counts(bob, roomId), '61/0 60/0 1/0');
      assert.equal(second.unread.evaluatedEvents, 0);
    });

    it('reads the events of each room with one query at the first sync of many rooms, and everything else with a few queries', async () => {
      const { fixture } = await openUnread(open);
      const rooms: string[] = [];
      for (let count = 0; count < 12; count++) {
        const roomId = await fixture.room(alice, bob);
        await fixture.say(alice, roomId, 'x');
        rooms.push(roomId);
      }
      const { engine, counts } = unreadFromDisk(fixture);
      for (const roomId of rooms) await engine.heads.get(roomId);
      const { reads } = fixture.database.statistics;
      for (const result of await Promise.all(rooms.map((roomId) => counts(bob, roomId)))) {
        assert.equal(result, '1/0 1/0');
      }
      // The rules, tallies, receipts and membership events of all rooms, and the power levels.
      const queries = fixture.database.statistics.reads - reads;
      assert.ok(queries <= rooms.length + 6, `${queries} queries for ${rooms.length} rooms`);
    });

    it('saves the tally of a room with one write after many events were counted', async () => {
      const { fixture, roomId, unread, counts } = await openUnread(open);
      await Promise.all(Array.from({ length: 200 }, () => fixture.say(alice, roomId, 'x')));
      await counts(bob, roomId);
      const { batches } = fixture.database.statistics;
      fixture.clock.advance(60_000);
      await unread.stop();
      assert.equal(fixture.database.statistics.batches, batches + 1);
    });
  });
});
