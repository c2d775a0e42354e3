import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { RoomTables } from '../tables.ts';
import { deleteOldTransactions } from './transaction-cleanup.ts';

const hour = 3_600_000;

forSelectedDatabases(import.meta.url, (open) => {
  it('deleteOldTransactions deletes transaction ids between 24 and 25 hours after they were used', async () => {
    const fixture = await RoomsUnderTest.open(open);
    const roomId = await fixture.room(alice);
    const sender = { userId: alice, deviceId: 'A' };
    const send = (txnId: string) =>
      fixture.rooms.sending.message(
        sender,
        roomId,
        { type: 'm.room.message', content: { body: txnId } },
        txnId,
      );
    const storedTransactionIds = async () => {
      const rows = await fixture.database
        .reader<RoomTables>()
        .selectFrom('event_transactions')
        .select('txn_id')
        .execute();
      return rows.map((row) => row.txn_id.slice(-1)).sort();
    };
    const cleanUpAndWaitAnHour = async () => {
      await deleteOldTransactions(fixture);
      fixture.clock.advance(hour);
    };
    await send('a');
    await cleanUpAndWaitAnHour();
    await send('b');
    for (let hours = 1; hours < 24; hours++) await cleanUpAndWaitAnHour();
    assert.deepEqual(await storedTransactionIds(), ['a', 'b']);
    await cleanUpAndWaitAnHour();
    assert.deepEqual(await storedTransactionIds(), ['b']);
    await cleanUpAndWaitAnHour();
    assert.deepEqual(await storedTransactionIds(), []);
    const marks = await fixture.database
      .reader<RoomTables>()
      .selectFrom('transaction_marks')
      .selectAll()
      .execute();
    assert.ok(marks.length <= 25, `${marks.length} marks`);
  });
});
