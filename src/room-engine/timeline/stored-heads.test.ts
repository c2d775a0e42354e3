import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { transactionScope } from './transaction-ids.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('heads, events and transaction ids that are read after a start', () => {
    it('share queries when they are requested for several rooms at the same time', async () => {
      const before = await RoomsUnderTest.open(open);
      const roomIds: string[] = [];
      const messageIds: string[] = [];
      for (let index = 0; index < 10; index++) {
        const roomId = await before.room(alice);
        roomIds.push(roomId);
        messageIds.push(await before.say(alice, roomId, `message ${index}`));
      }
      const nids = new Map<string, number>();
      for (const eventId of messageIds) {
        const stored = await before.engine.events.getById(eventId);
        assert.ok(stored);
        nids.set(eventId, stored.nid);
      }

      const { engine, database } = await before.restart(open);
      const { statistics } = database;
      let [reads, scans] = [statistics.reads, statistics.scans];
      const heads = await Promise.all(roomIds.map((roomId) => engine.heads.get(roomId)));
      assert.deepEqual(
        heads.map((head) => head?.roomId),
        roomIds,
      );
      assert.deepEqual(
        heads.flatMap((head) => head?.extremities.map(({ eventId }) => eventId)),
        messageIds,
      );
      // For all rooms one scan of their rows and one read of their extremities. Besides, for each room, two scans and one read
      // of its state and its chain of state groups.
      const queries = [statistics.reads - reads, statistics.scans - scans];
      assert.deepEqual(queries, [1 + roomIds.length, 1 + 2 * roomIds.length]);

      [reads, scans] = [statistics.reads, statistics.scans];
      const events = await Promise.all([...nids.values()].map((nid) => engine.events.get(nid)));
      assert.deepEqual(
        events.map((stored) => stored?.event.eventId),
        messageIds,
      );
      assert.deepEqual([statistics.reads - reads, statistics.scans - scans], [1, 0]);

      const scope = transactionScope(alice, 'DEVICE');
      reads = statistics.reads;
      await Promise.all(roomIds.map(() => engine.transactions.prepare(scope)));
      assert.notEqual(engine.transactions.peek(scope, nids.get(messageIds[0]!)!), undefined);
      assert.equal(statistics.reads - reads, 1);
    });
  });
});
