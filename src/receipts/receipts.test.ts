import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases, type OpenDatabase } from '../../test/support/databases/databases.ts';
import { alice, bob, carol, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { type Receipt, Receipts, type ReceiptType, receiptMigrations } from './index.ts';

const noMarkers = { find: async () => undefined, set: async () => undefined };

function createReceipts({ database, streams, clock, caches, engine }: RoomsUnderTest) {
  return new Receipts({ caches, database, streams, clock, engine, markers: noMarkers });
}

async function openFixture(open: OpenDatabase) {
  const fixture = await RoomsUnderTest.open(open, receiptMigrations);
  const receipts = createReceipts(fixture);
  const facts: Receipt[] = [];
  receipts.receiptStream.subscribe((fact) => facts.push(fact));
  const roomId = await fixture.room(alice, bob);
  const sendReceipt = (userId: string, eventId: string, type: ReceiptType = 'm.read', threadId?: string) =>
    receipts.send({ userId, roomId, type, eventId, threadId });
  return { fixture, receipts, facts, roomId, sendReceipt };
}

const forbidden = { errcode: 'M_FORBIDDEN' };
const invalid = { errcode: 'M_INVALID_PARAM' };

forSelectedDatabases(import.meta.url, (open) => {
  describe('read receipts of users', () => {
    it('announces a receipt as a fact and returns it as m.receipt content', async () => {
      const { fixture, receipts, facts, roomId, sendReceipt } = await openFixture(open);
      const eventId = await fixture.say(alice, roomId, 'hello');
      const before = fixture.streams.current;
      await sendReceipt(bob, eventId);
      const ts = fixture.clock.now();
      const stream = await fixture.positionOf(eventId);
      const fact = { userId: bob, roomId, type: 'm.read' as const, eventId, threadId: undefined, stream, ts };
      assert.deepEqual(facts, [fact]);
      const now = fixture.streams.current;
      const content = { [eventId]: { 'm.read': { [bob]: { ts } } } };
      assert.deepEqual(await receipts.contentsSince(roomId, before, now, alice), [content]);
      assert.deepEqual(await receipts.contentsSince(roomId, now, now, alice), []);
      assert.deepEqual(await receipts.contentsAll(roomId, alice), [content]);
      assert.deepEqual(await receipts.contentsSince('!other:test', before, now, alice), []);
    });

    it('never moves a receipt backwards', async () => {
      const { fixture, receipts, facts, roomId, sendReceipt } = await openFixture(open);
      const first = await fixture.say(alice, roomId, '1');
      const second = await fixture.say(alice, roomId, '2');
      await sendReceipt(bob, second);
      await sendReceipt(bob, first);
      await sendReceipt(bob, second);
      assert.equal(facts.length, 1);
      assert.equal((await receipts.readUpTo(bob, roomId)).room, await fixture.positionOf(second));
    });

    it('keeps the receipt for the latest event when receipts for several events arrive at the same time', async () => {
      const { fixture, receipts, facts, roomId, sendReceipt } = await openFixture(open);
      const events: string[] = [];
      for (let index = 0; index < 5; index++) events.push(await fixture.say(alice, roomId, 'x'));
      await Promise.all([...events].reverse().map((eventId) => sendReceipt(bob, eventId)));
      const [content] = await receipts.contentsAll(roomId, alice);
      assert.deepEqual(Object.keys(content ?? {}), [events[4]]);
      assert.equal(facts.at(-1)?.eventId, events[4]);
    });

    it('shows a private receipt to its user only, and returns the later of the public and the private receipt as what the user has read', async () => {
      const { fixture, receipts, roomId, sendReceipt } = await openFixture(open);
      const first = await fixture.say(alice, roomId, '1');
      const second = await fixture.say(alice, roomId, '2');
      const before = fixture.streams.current;
      await sendReceipt(bob, first);
      await sendReceipt(bob, second, 'm.read.private');
      const seen = async (viewer: string) => {
        const now = fixture.streams.current;
        const since = await receipts.contentsSince(roomId, before, now, viewer);
        assert.deepEqual(await receipts.contentsAll(roomId, viewer), since);
        return Object.keys(since[0] ?? {}).sort();
      };
      assert.deepEqual(await seen(alice), [first]);
      assert.deepEqual(await seen(bob), [first, second].sort());
      assert.equal((await receipts.readUpTo(bob, roomId)).room, await fixture.positionOf(second));
      assert.equal((await receipts.readUpTo(alice, roomId)).room, 0);
    });

    it('accepts a threaded receipt for events of the thread, its root, and events related to them, and rejects it for other events', async () => {
      const { fixture, receipts, roomId, sendReceipt } = await openFixture(open);
      const root = await fixture.say(alice, roomId, 'root');
      const reply = await fixture.reply(alice, roomId, root);
      const reaction = await fixture.send(alice, roomId, 'm.reaction', {
        'm.relates_to': { rel_type: 'm.annotation', event_id: reply, key: '+' },
      });
      const onRoot = await fixture.send(alice, roomId, 'm.reaction', {
        'm.relates_to': { rel_type: 'm.annotation', event_id: root, key: '+' },
      });
      for (const eventId of [root, reply, reaction, onRoot]) await sendReceipt(bob, eventId, 'm.read', root);
      for (const eventId of [root, onRoot]) await sendReceipt(bob, eventId, 'm.read', 'main');
      const read = await receipts.readUpTo(bob, roomId);
      assert.equal(read.thread(), await fixture.positionOf(onRoot));
      assert.equal(read.room, 0);
      await assert.rejects(sendReceipt(bob, reply, 'm.read', 'main'), invalid);
      await assert.rejects(sendReceipt(bob, reaction, 'm.read', 'main'), invalid);
      await assert.rejects(sendReceipt(bob, root, 'm.read', reply), invalid);
      await assert.rejects(sendReceipt(bob, '$unknown', 'm.read', 'main'), invalid);
    });

    it('keeps receipts of different threads apart, and returns all receipts for one event', async () => {
      const { fixture, receipts, roomId, sendReceipt } = await openFixture(open);
      const before = fixture.streams.current;
      const root = await fixture.say(alice, roomId, 'root');
      await sendReceipt(bob, root);
      await sendReceipt(bob, root, 'm.read', 'main');
      await sendReceipt(bob, root, 'm.read', root);
      const contents = await receipts.contentsSince(roomId, before, fixture.streams.current, alice);
      const threads = contents.map((content) => content[root]?.['m.read']?.[bob]?.thread_id);
      assert.deepEqual(threads, [root, 'main', undefined]);
      const later = await fixture.reply(alice, roomId, root);
      await sendReceipt(bob, later, 'm.read', root);
      const read = await receipts.readUpTo(bob, roomId);
      assert.equal(read.thread(root), await fixture.positionOf(later));
      assert.equal(read.thread(), await fixture.positionOf(root));
    });

    it('ignores receipts for events outside of the room, rejects receipts for invisible events with M_FORBIDDEN, and for invalid event ids with M_INVALID_PARAM', async () => {
      const { fixture, facts, roomId, sendReceipt } = await openFixture(open);
      const otherRoom = await fixture.room(carol);
      const elsewhere = await fixture.say(carol, otherRoom, 'hello');
      await sendReceipt(bob, '$unknown');
      await sendReceipt(bob, elsewhere);
      assert.deepEqual(facts, []);
      await assert.rejects(sendReceipt(bob, 'hello'), invalid);
      const eventId = await fixture.say(alice, roomId, 'hello');
      await assert.rejects(sendReceipt(carol, eventId), forbidden);
      await fixture.rooms.sending.state(
        { userId: alice, deviceId: undefined },
        roomId,
        { type: 'm.room.history_visibility', stateKey: '' },
        { history_visibility: 'joined' },
      );
      const hidden = await fixture.say(alice, roomId, 'before');
      await fixture.join(carol, roomId);
      await assert.rejects(sendReceipt(carol, hidden), forbidden);
      await sendReceipt(carol, await fixture.say(alice, roomId, 'after'));
      assert.equal(facts.length, 1);
    });

    it('stores a receipt of a remote user for an unknown event', async () => {
      const { fixture, receipts, facts, roomId } = await openFixture(open);
      const eventId = await fixture.say(alice, roomId, 'hello');
      const receipt = { userId: '@dora:far', roomId, type: 'm.read' as const, threadId: undefined, ts: 5 };
      const stream = await fixture.positionOf(eventId);
      await receipts.record({ ...receipt, eventId, stream });
      await receipts.record({ ...receipt, eventId: '$later', stream: undefined });
      assert.deepEqual(await receipts.contentsAll(roomId, alice), [
        { $later: { 'm.read': { '@dora:far': { ts: 5 } } } },
      ]);
      await receipts.record({ ...receipt, eventId, stream });
      assert.equal(facts.length, 3);
    });

    it('returns receipts after a restart, also for sync tokens from before the restart', async () => {
      const { fixture, roomId, sendReceipt } = await openFixture(open);
      const before = fixture.streams.current;
      const eventId = await fixture.say(alice, roomId, 'hello');
      await sendReceipt(bob, eventId);
      const content = { [eventId]: { 'm.read': { [bob]: { ts: fixture.clock.now() } } } };
      const position = await fixture.positionOf(eventId);
      const restarted = await fixture.restart(open);
      const receipts = createReceipts(restarted);
      const now = restarted.streams.current;
      assert.deepEqual(await receipts.contentsSince(roomId, before, now, alice), [content]);
      assert.deepEqual(await receipts.contentsAll(roomId, alice), [content]);
      assert.equal((await receipts.readUpTo(bob, roomId)).room, position);
    });

    it('reads receipts of many rooms together, and of a large room only the newest receipts and the one of the user', async () => {
      const { fixture, receipts } = await openFixture(open);
      const rooms: string[] = [];
      for (let number = 0; number < 5; number++) rooms.push(await fixture.room(alice, bob));
      const [quiet, large] = [rooms[0]!, rooms[1]!];
      const recordReceipt = (roomId: string, userId: string, ts: number) =>
        receipts.record({
          roomId,
          userId,
          type: 'm.read',
          threadId: undefined,
          eventId: `$${ts}`,
          stream: undefined,
          ts,
        });
      const otherRooms = rooms.slice(2);
      for (const [index, roomId] of otherRooms.entries()) await recordReceipt(roomId, bob, index);
      await recordReceipt(large, alice, 0);
      for (let number = 1; number <= 501; number++) await recordReceipt(large, `@user${number}:far`, number);
      const { reads } = fixture.database.statistics;
      const contentsByRoom = await receipts.contentsOfRooms(rooms, alice);
      // One query counts receipts, two read the receipts of the large room, one reads the receipts of all other rooms,
      // and at most one reads the users whom Alice ignores.
      assert.ok(fixture.database.statistics.reads - reads <= 5);
      assert.deepEqual([...contentsByRoom.keys()].sort(), [large, ...otherRooms].sort());
      assert.equal(contentsByRoom.has(quiet), false);
      for (const [index, roomId] of otherRooms.entries()) {
        assert.deepEqual(contentsByRoom.get(roomId), [
          { [`$${index}`]: { 'm.read': { [bob]: { ts: index } } } },
        ]);
      }
      const [content] = contentsByRoom.get(large) ?? [];
      const eventNumbers = Object.keys(content ?? {}).map((eventId) => Number(eventId.slice(1)));
      const expected = [0, ...Array.from({ length: 500 }, (_, index) => index + 2)];
      assert.deepEqual(
        eventNumbers.sort((a, b) => a - b),
        expected,
        'the newest 500 receipts, and the receipt of Alice',
      );
    });

    it('returns receipts and read positions without a query while nothing changes', async () => {
      const { fixture, receipts, roomId, sendReceipt } = await openFixture(open);
      await sendReceipt(bob, await fixture.say(alice, roomId, 'hello'));
      await receipts.readUpTo(bob, roomId);
      const after = fixture.streams.current;
      const last = await fixture.say(alice, roomId, 'more');
      await sendReceipt(bob, last);
      const before = JSON.stringify(fixture.database.statistics);
      await receipts.contentsSince(roomId, after, fixture.streams.current, alice);
      const read = receipts.readUpTo(bob, roomId);
      assert.ok(!(read instanceof Promise), 'a cached value is returned synchronously');
      assert.equal(read.room, await fixture.positionOf(last));
      assert.equal(JSON.stringify(fixture.database.statistics), before);
    });
  });
});
