import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('repeated transaction ids (TransactionIds)', () => {
    it('deduplicates events by device, path, room and transaction id, also concurrently and after a restart', async () => {
      const first = await RoomsUnderTest.open(open);
      const [firstRoomId, otherRoomId] = [await first.room(alice), await first.room(alice)];
      const device = { userId: alice, deviceId: 'ONE' };
      const send = (
        fixture: RoomsUnderTest,
        roomId = firstRoomId,
        type = 'm',
        sender = device,
        txnId = 'txn',
      ) => fixture.rooms.sending.message(sender, roomId, { type, content: {} }, txnId);
      const [eventId, repeatedId] = await Promise.all([send(first), send(first)]);
      assert.equal(repeatedId, eventId);
      const otherIds = [
        await send(first, otherRoomId),
        await send(first, firstRoomId, 'n'),
        await send(first, firstRoomId, 'm', { userId: alice, deviceId: 'TWO' }),
        await send(first, firstRoomId, 'm', device, 'other txn'),
      ];
      assert.equal(new Set([eventId, ...otherIds]).size, 5);
      const second = await first.restart(open);
      assert.equal(await send(second), eventId);
      assert.equal(await send(second, otherRoomId), otherIds[0]);
    });
  });
});
