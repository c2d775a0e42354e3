import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { alice, bob, carol, RoomsUnderTest, RoutesUnderTest } from '../../test/support/rooms/rooms.ts';
import { Receipts, receiptMigrations } from './index.ts';
import { receiptRoutes } from './routes.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('receipt and read marker endpoints', () => {
    let fixture: RoomsUnderTest;
    let http: RoutesUnderTest;
    let receipts: Receipts;
    let roomId: string;
    const fullyRead = new Map<string, string>();
    before(async () => {
      fixture = await RoomsUnderTest.open(open, receiptMigrations);
      const { database, streams, clock, caches, engine } = fixture;
      const markers = {
        find: async (userId: string, room: string) => fullyRead.get(userId + room),
        set: async (userId: string, room: string, eventId: string) => {
          fullyRead.set(userId + room, eventId);
        },
      };
      receipts = new Receipts({ caches, database, streams, clock, engine, markers });
      http = await RoutesUnderTest.start(receiptRoutes(receipts), clock);
      roomId = await fixture.room(alice, bob);
    });
    after(() => http.stop());

    const post = (userId: string, path: string, body: unknown) =>
      http.call(userId, 'POST', `/rooms/${roomId}/${path}`, body);
    const sendReceipt = (type: string, eventId: string, body: unknown = {}) =>
      post(bob, `receipt/${type}/${encodeURIComponent(eventId)}`, body);
    const markerOf = (userId: string) => fullyRead.get(userId + roomId);

    it('stores public, private and threaded receipts', async () => {
      const root = await fixture.say(alice, roomId, 'root');
      const reply = await fixture.reply(alice, roomId, root);
      assert.deepEqual(await sendReceipt('m.read', root), { status: 200, body: {} });
      assert.equal((await sendReceipt('m.read.private', reply, { thread_id: root })).status, 200);
      const read = await receipts.readUpTo(bob, roomId);
      assert.equal(read.room, await fixture.positionOf(root));
      assert.equal(read.thread(root), await fixture.positionOf(reply));
    });

    it('answers M_INVALID_PARAM to invalid threads, types and events, and M_FORBIDDEN to users outside of the room', async () => {
      const root = await fixture.say(alice, roomId, 'root');
      const reply = await fixture.reply(alice, roomId, root);
      const errors = [
        await sendReceipt('m.read', reply, { thread_id: '' }),
        await sendReceipt('m.read', reply, { thread_id: 5 }),
        await sendReceipt('m.read', reply, { thread_id: null }),
        await sendReceipt('m.read', reply, { thread_id: 'main' }),
        await sendReceipt('m.fully_read', root, { thread_id: 'main' }),
        await sendReceipt('m.seen', root),
        await sendReceipt('m.read', 'root'),
        await sendReceipt('m.fully_read', 'root'),
      ];
      for (const { status, body } of errors) {
        assert.deepEqual([status, body['errcode']], [400, 'M_INVALID_PARAM']);
      }
      const outsider = await post(carol, `receipt/m.read/${encodeURIComponent(root)}`, {});
      assert.deepEqual([outsider.status, outsider.body['errcode']], [403, 'M_FORBIDDEN']);
      assert.equal((await sendReceipt('m.read', root, [])).status, 400);
    });

    it('moves the fully read marker forwards only', async () => {
      const first = await fixture.say(alice, roomId, '1');
      const second = await fixture.say(alice, roomId, '2');
      await sendReceipt('m.fully_read', second);
      assert.equal(markerOf(bob), second);
      await post(bob, 'read_markers', { 'm.fully_read': first });
      await post(bob, 'read_markers', { 'm.fully_read': '$unknown' });
      assert.equal(markerOf(bob), second);
    });

    it('sets the fully read marker and receipts in one request', async () => {
      const first = await fixture.say(bob, roomId, '1');
      const second = await fixture.say(bob, roomId, '2');
      const third = await fixture.say(bob, roomId, '3');
      const body = { 'm.fully_read': first, 'm.read': second, 'm.read.private': third };
      assert.deepEqual(await post(alice, 'read_markers', body), { status: 200, body: {} });
      assert.equal(markerOf(alice), first);
      const [content] = await receipts.contentsAll(roomId, alice);
      assert.ok(content?.[second]?.['m.read']?.[alice]);
      assert.ok(content?.[third]?.['m.read.private']?.[alice]);
      assert.deepEqual(await post(alice, 'read_markers', {}), { status: 200, body: {} });
      assert.equal((await post(alice, 'read_markers', { 'm.read': 5 })).status, 400);
      assert.equal((await post(carol, 'read_markers', body)).status, 403);
    });
  });
});
