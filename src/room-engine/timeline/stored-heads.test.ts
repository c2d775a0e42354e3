import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { transactionScope } from './transaction-ids.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('heads, events and transaction ids that are read after a start', () => {
    it('share queries when they are requested for several rooms at the same time', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomIds: string[] = [];
      const messageIds: string[] = [];
      for (let index = 0; index < 10; index++) {
        const roomId = await fixture.room(alice);
        roomIds.push(roomId);
        messageIds.push(await fixture.say(alice, roomId, `message ${index}`));
      }
      const nids = new Map<string, number>();
      for (const eventId of messageIds) {
        const stored = await fixture.engine.events.getById(eventId);
        assert.ok(stored);
        nids.set(eventId, stored.nid);
      }

      const { engine, database } = await fixture.restart(open);
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
      // One scan reads the rows of all rooms, and one read all extremities. For each room, two scans and one read load
      // the state and the chain of state groups.
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
