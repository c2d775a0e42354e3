import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { RoomTables } from '../tables.ts';
import { readPendingRedactionsOf } from './store.ts';

forSelectedDatabases(import.meta.url, (open) => {
  it('readPendingRedactionsOf returns the first redactions of each target, also when another target has more than 500', async () => {
    const { database } = await RoomsUnderTest.open(open);
    const rows = Array.from({ length: 600 }, (_, nid) => ({ target_id: '$many', redaction_nid: nid + 1 }));
    await database.transaction<RoomTables, void>(async (writer) => {
      for (let start = 0; start < rows.length; start += 100)
        await writer
          .insertInto('pending_redactions')
          .values(rows.slice(start, start + 100))
          .execute();
      await writer
        .insertInto('pending_redactions')
        .values({ target_id: '$one', redaction_nid: 601 })
        .execute();
    });
    assert.deepEqual(await readPendingRedactionsOf(database.reader<RoomTables>(), ['$many', '$one'], 2), [
      { targetId: '$many', nid: 1 },
      { targetId: '$many', nid: 2 },
      { targetId: '$one', nid: 601 },
    ]);
  });
});
