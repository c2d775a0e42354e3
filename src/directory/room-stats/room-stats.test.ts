import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { directoryMigrations } from '../migrations.ts';
import type { DirectoryTables } from '../tables.ts';
import { startRoomStats } from '../test/started-room-stats.ts';

forSelectedDatabases(import.meta.url, (open) => {
  const roomIds = async ({ database }: RoomsUnderTest) => {
    const rows = await database
      .reader<DirectoryTables>()
      .selectFrom('room_stats')
      .select('room_id')
      .execute();
    return rows.map((row) => row.room_id);
  };

  describe('RoomStats', () => {
    it('writes after a restart the rows of rooms that were created after RoomStats had stopped', async () => {
      const fixture = await RoomsUnderTest.open(open, directoryMigrations);
      await (await startRoomStats(fixture)).stop();
      const roomId = await fixture.room(alice);
      const again = await fixture.restart(open);
      assert.deepEqual(await roomIds(again), []);
      const restarted = await startRoomStats(again);
      await restarted.caughtUp();
      assert.deepEqual(await roomIds(again), [roomId]);
      await restarted.stop();
    });

    it('combines the writes of many changes of a room: fewer than 50 transactions for 200 joins at the same time', async () => {
      const fixture = await RoomsUnderTest.open(open, directoryMigrations);
      const stats = await startRoomStats(fixture);
      const roomId = await fixture.room(alice);
      await stats.caughtUp();
      const before = fixture.database.statistics.transactions;
      await Promise.all(
        Array.from({ length: 200 }, (_, index) => fixture.join(`@user${index}:test`, roomId)),
      );
      await stats.caughtUp();
      const { transactions } = fixture.database.statistics;
      assert.ok(transactions - before < 50, `${transactions - before} transactions for 200 joins`);
      await stats.stop();
    });
  });
});
