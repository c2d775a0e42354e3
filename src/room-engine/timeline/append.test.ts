import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { eventually } from '../../../test/clients/eventually.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { mentions } from '../../../test/support/databases/unreliable-database.ts';
import { alice, bob, carol, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { textsIn, timelineOf } from '../../../test/support/rooms/timeline.ts';
import { openUnreliableRooms } from '../../../test/support/rooms/unreliable-rooms.ts';
import { jsonFacts, Stream } from '../../kernel/streams/index.ts';
import { roomVersions } from '../../protocol/index.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('sending an event of a local user (EventAppender.append)', () => {
    it('resolves when the event can be read from memory and from disk', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const { heads, userRooms } = fixture.engine;
      assert.deepEqual(await userRooms.withMembership(bob, 'join'), []);
      const slowerWrite = fixture.streams.reserving((reserve) =>
        reserve(new Stream<string>('slower write', jsonFacts())),
      );
      let isAnswered = false;
      const join = fixture.join(bob, roomId).then(() => {
        isAnswered = true;
      });
      await eventually('the join', async () => (await heads.get(roomId))?.membership(bob) === 'join');
      await fixture.engine.settled();
      await turn();
      assert.equal(isAnswered, false);
      slowerWrite.complete('the slower write');
      await join;
      assert.deepEqual(await userRooms.withMembership(bob, 'join'), [roomId]);
    });

    it('keeps the order of the events of each sender under concurrent sends, shares flushes, and reads nothing from the database', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice, bob, carol);
      for (const userId of [alice, bob, carol]) await fixture.say(userId, roomId, 'warm');
      const before = { ...fixture.database.statistics };
      const talk = async (userId: string) => {
        for (let index = 0; index < 40; index++) await fixture.say(userId, roomId, `${userId} ${index}`);
      };
      const users = [alice, bob, carol];
      await Promise.all([...users, ...users].map(talk));
      const { reads, scans, flushes, batches } = fixture.database.statistics;
      assert.equal(reads + scans, before.reads + before.scans);
      assert.ok(batches - before.batches <= 120, `${batches - before.batches} batches for 240 events`);
      assert.ok(flushes - before.flushes <= batches - before.batches, 'a batch has at most one flush');
      const texts = await textsIn(fixture, roomId);
      assert.equal(texts.length, 3 + 240);
      for (const userId of users) {
        const numbers = texts
          .map((text) => String(text).split(' '))
          .filter(([sender, number]) => sender === userId && number !== undefined)
          .map(([, number]) => Number(number));
        assert.deepEqual(
          numbers.toSorted((a, b) => a - b),
          numbers,
          'in the order in which they were sent',
        );
        assert.equal(numbers.length, 80);
      }
    });

    it('publishes no event that is not on disk yet', async () => {
      const { fixture, database } = await openUnreliableRooms(open);
      const roomId = await fixture.room(alice);
      const writing = Promise.withResolvers<void>();
      database.delay = () => writing.promise;
      const sending = fixture.say(alice, roomId, 'hello');
      const newest = async () => (await fixture.engine.heads.get(roomId))?.extremities[0]?.eventId;
      const before = await newest();
      while ((await newest()) === before) await new Promise(setImmediate);
      const eventId = (await newest()) ?? '';
      const readEvent = () =>
        fixture.rooms.historyReader.event({ userId: alice, deviceId: 'DEVICE' }, roomId, eventId);
      await assert.rejects(readEvent(), { errcode: 'M_NOT_FOUND' });
      writing.resolve();
      assert.equal(await sending, eventId);
      assert.equal((await readEvent()).event_id, eventId);
    });

    it('writes with one flush the events that are staged in one turn of the event loop', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      await fixture.say(alice, roomId, 'warm');
      const { flushes, batches } = fixture.database.statistics;
      await Promise.all(Array.from({ length: 50 }, (_, index) => fixture.say(alice, roomId, `${index}`)));
      assert.equal(fixture.database.statistics.batches, batches + 1);
      assert.ok(fixture.database.statistics.flushes <= flushes + 1);
      const events = await timelineOf(fixture, roomId);
      for (const [index, { event }] of events.entries()) {
        assert.equal(event.depth, index + 1);
        assert.deepEqual(event.prevEventIds, index === 0 ? [] : [events[index - 1]?.event.eventId]);
      }
    });

    it('signs and writes many events before a long turn of the event loop is over', async () => {
      const { fixture, database } = await openUnreliableRooms(open);
      const roomId = await fixture.room(alice);
      await Promise.all(['these', 'start', 'the signer'].map((text) => fixture.say(alice, roomId, text)));
      let turnIsOver = false;
      let isWriting = false;
      setImmediate(() => {
        turnIsOver = true;
      });
      database.delay = () => {
        isWriting = true;
        return undefined;
      };
      const sleepBuffer = new Int32Array(new SharedArrayBuffer(4));
      const sending: Promise<unknown>[] = [];
      while (!isWriting && sending.length < 2_000) {
        sending.push(fixture.say(alice, roomId, `${sending.length}`));
        for (let step = 0; step < 50; step++) await Promise.resolve();
        if (sending.length > 16) Atomics.wait(sleepBuffer, 0, 0, 1);
      }
      assert.equal(isWriting, true);
      assert.equal(turnIsOver, false);
      await Promise.all(sending);
      assert.equal((await textsIn(fixture, roomId)).length, 3 + sending.length);
    });

    it('commits an event without waiting for other rooms, but after earlier events of its own room', async () => {
      const { fixture, database } = await openUnreliableRooms(open);
      const [aliceRoom, bobRoom] = [await fixture.room(alice), await fixture.room(bob)];
      const written: string[] = [];
      const isWriting = Promise.withResolvers<void>();
      const slowWrite = Promise.withResolvers<void>();
      database.delay = (statements) => {
        const texts = ['first', 'second', 'elsewhere'].filter((text) => mentions(statements, text));
        written.push(...texts);
        isWriting.resolve();
        return texts.includes('first') ? slowWrite.promise : undefined;
      };
      const first = fixture.say(alice, aliceRoom, 'first');
      await isWriting.promise;
      const second = fixture.say(alice, aliceRoom, 'second');
      const elsewhere = fixture.say(bob, bobRoom, 'elsewhere');
      await eventually('the other room', () => written.length > 1);
      await fixture.database.transaction(async () => undefined);
      assert.deepEqual(written, ['first', 'elsewhere']);
      slowWrite.resolve();
      await Promise.all([first, second, elsewhere]);
      assert.deepEqual(await textsIn(fixture, aliceRoom), ['first', 'second']);
    });

    it('continues after a restart from the stored extremities and state', async () => {
      const first = await RoomsUnderTest.open(open);
      const roomId = await first.room(alice, bob);
      await first.say(alice, roomId, 'one');
      const state = new Map((await first.engine.heads.get(roomId))?.state);
      const second = await first.restart(open);
      await second.say(bob, roomId, 'two');
      assert.deepEqual(await textsIn(second, roomId), ['one', 'two']);
      assert.deepEqual(new Map((await second.engine.heads.get(roomId))?.state), state);
      const events = await timelineOf(second, roomId);
      assert.deepEqual(events.at(-1)?.event.prevEventIds, [events.at(-2)?.event.eventId]);
    });

    it('sends events in every room version, also after a restart', async () => {
      let fixture = await RoomsUnderTest.open(open);
      const rooms: string[] = [];
      for (const id of roomVersions.keys()) {
        rooms.push(await fixture.rooms.creation.create(alice, { preset: 'public_chat', room_version: id }));
      }
      fixture = await fixture.restart(open);
      for (const roomId of rooms) {
        await fixture.join(bob, roomId);
        await fixture.redact(alice, roomId, await fixture.say(alice, roomId, 'hello'));
        const [target] = (await timelineOf(fixture, roomId)).slice(-2);
        assert.notEqual(target?.redactedBy, undefined);
      }
    });

    it('sends events when the event cache holds one event: unsaved events stay in memory, and other events are read again', async () => {
      const fixture = await RoomsUnderTest.open(open, [], { eventCacheSize: 1 });
      const roomId = await fixture.room(alice, bob);
      const sent = await Promise.all(
        Array.from({ length: 30 }, (_, index) => fixture.say(index % 2 ? alice : bob, roomId, `${index}`)),
      );
      assert.equal(new Set(sent).size, 30);
      const [first = ''] = sent;
      await fixture.say(alice, roomId, 'something else');
      await fixture.redact(bob, roomId, first);
      const recent = (await fixture.engine.heads.get(roomId))?.recent;
      const target = recent?.find(({ event }) => event.eventId === first);
      assert.notEqual(
        target?.redactedBy,
        undefined,
        'the event that is kept in memory for syncs is redacted, too',
      );
    });
  });

  describe('sending a state event that changes nothing (EventAppender.append)', () => {
    const sender = { userId: alice, deviceId: undefined };
    const topic = { type: 'm.room.topic', stateKey: '' };

    it('returns the current state event without sending another event', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const set = () => fixture.rooms.sending.state(sender, roomId, topic, { topic: 'x' });
      const [first, second] = await Promise.all([set(), set()]);
      assert.equal(first, second);
      assert.equal(await set(), first);
    });

    it('sends the event when the current state event was redacted', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const first = await fixture.rooms.sending.state(sender, roomId, topic, { topic: 'x' });
      await fixture.redact(alice, roomId, first);
      assert.notEqual(await fixture.rooms.sending.state(sender, roomId, topic, { topic: 'x' }), first);
    });

    it('rejects two equal events that are sent at the same time when the first of them could not be stored', async () => {
      const { fixture, database } = await openUnreliableRooms(open);
      const roomId = await fixture.room(alice);
      database.fails = (statements) => mentions(statements, 'doomed');
      const set = () => fixture.rooms.sending.state(sender, roomId, topic, { topic: 'doomed' });
      const results = await Promise.allSettled([set(), set()]);
      assert.deepEqual(
        results.map(({ status }) => status),
        ['rejected', 'rejected'],
      );
    });
  });
});
