import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { migrate } from '../../kernel/database/index.ts';
import { streamMigrations } from '../../kernel/streams/index.ts';
import type { RoomTables } from '../tables.ts';
import { columnNamesMigration } from './column-names.ts';
import { roomMigrations } from './index.ts';

const olderMigrations = roomMigrations.slice(0, roomMigrations.indexOf(columnNamesMigration));

forSelectedDatabases(import.meta.url, (open) => {
  it('columnNamesMigration keeps the former extremities and the backward extremities of rooms', async () => {
    const database = await open([...streamMigrations, ...olderMigrations]);
    const room = [1, '!room', '12', '[9]', 1, '[4,5]'];
    const gaps = [
      [1, '$missed', 90, 4],
      [1, '$old', null, 5],
    ];
    await database.batch([
      {
        sql: 'insert into rooms (room_nid, room_id, version, extremities, created_ts, loose_ends) values (?, ?, ?, ?, ?, ?)',
        rows: [room],
      },
      {
        sql: 'insert into backward_extremities (room_nid, event_id, answers_left, named_by) values (?, ?, ?, ?)',
        rows: gaps,
      },
    ]);
    await migrate(database, [...streamMigrations, ...roomMigrations]);
    const tables = database.reader<RoomTables>();
    const rooms = await tables.selectFrom('rooms').select(['room_id', 'former_extremities']).execute();
    assert.deepEqual(rooms, [{ room_id: '!room', former_extremities: '[4,5]' }]);
    const stored = await tables
      .selectFrom('backward_extremities')
      .select(['room_nid', 'event_id', 'backfills_left', 'referenced_by'])
      .orderBy('event_id')
      .execute();
    assert.deepEqual(stored.map(Object.values), gaps);
  });
});
