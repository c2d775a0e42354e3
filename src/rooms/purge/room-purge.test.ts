import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { roomEngineManifest } from '../../room-engine/manifest.ts';
import { RoomPurge } from './room-purge.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('RoomPurge', () => {
    it('leaves a room as it is when it purges an earlier room with the same id, which was deleted before this server joined again', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      await fixture.say(alice, roomId, 'hello');
      await fixture.rooms.aliases.put(alice, '#garden:test', roomId);
      const head = await fixture.engine.heads.get(roomId);
      assert.ok(head);
      const purge = new RoomPurge({ ...fixture, rows: [roomEngineManifest.roomRows] });
      const deletedRoom = { roomId, roomNid: head.roomNid + 1_000 };
      assert.equal(await purge.purge(deletedRoom, async () => true, new AbortController().signal), true);
      assert.deepEqual(await fixture.rooms.aliases.of(roomId), ['#garden:test']);
      assert.equal((await fixture.engine.heads.get(roomId))?.membership(alice), 'join');
      await fixture.say(alice, roomId, 'still here');
    });
  });
});
