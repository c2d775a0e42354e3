import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { RoomTables } from '../../room-engine/index.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('aliases of rooms', () => {
    it('refuses with M_TOO_LARGE the 1,001st local alias of a room, and accepts the alias for another room', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { rooms, database } = fixture;
      const roomId = await fixture.room(alice);
      const otherRoomId = await fixture.room(bob);
      const rows = Array.from({ length: 1_000 }, (_, index) => ({
        alias: `#alias${index}:test`,
        room_id: roomId,
        creator: alice,
      }));
      await database.transaction<RoomTables, void>(async (writer) => {
        await writer.insertInto('room_aliases').values(rows).execute();
      });
      const create = (userId: string, id: string) => rooms.aliases.create({ userId }, '#one-more:test', id);
      await assert.rejects(create(alice, roomId), { errcode: 'M_TOO_LARGE' });
      await create(bob, otherRoomId);
      assert.deepEqual(await rooms.aliases.of(otherRoomId), ['#one-more:test']);
    });
  });
});
