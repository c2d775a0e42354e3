import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { directoryMigrations } from '../../directory/index.ts';
import { streamMigrations } from '../../kernel/streams/index.ts';
import { type ReportTables, reportMigrations } from '../../reports/index.ts';
import { roomMigrations } from '../../room-engine/index.ts';
import { insertRoomRow } from '../test/room-row.ts';
import { ReportList } from './report-list.ts';

forSelectedDatabases(import.meta.url, (open) => {
  for (const read of ['page', 'get'] as const)
    it(`${read} of ReportList waits until the table of rooms has the name of a room that was just created`, async () => {
      const database = await open([
        ...streamMigrations,
        ...roomMigrations,
        ...directoryMigrations,
        ...reportMigrations,
      ]);
      await database.transaction<ReportTables, void>(async (writer) => {
        await writer
          .insertInto('reports')
          .values({
            id: 1,
            kind: 'room',
            received_ts: 1,
            reporter: '@anna:test',
            room_id: '!meadow',
            event_id: null,
            user_id: null,
            reason: null,
            score: null,
          })
          .execute();
      });
      const caughtUp = () => insertRoomRow(database, { room_id: '!meadow', name: 'Meadow' });
      const list = new ReportList({ database, caughtUp }, 'room');
      const report =
        read === 'get' ? await list.get(1) : (await list.page({}, true, { offset: 0 }, 10)).rows[0];
      assert.equal(report?.name, 'Meadow');
    });
});
