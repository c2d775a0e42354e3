import { sql } from 'kysely';
import type { Migration } from '../../kernel/database/index.ts';

/** The flag that out-of-band events had while they were in `events`. It was the highest flag. */
const outsideFlag = 64;

/** Moves out-of-band memberships into their own table, apart from the events of rooms (decision 0116). */
export const outsideEventsMigration: Migration = {
  name: 'rooms/0012-outside-events',
  async up({ db }) {
    await db.schema
      .createTable('outside_events')
      .addColumn('nid', 'bigint', (column) => column.primaryKey())
      .addColumn('room_nid', 'bigint', (column) => column.notNull())
      .addColumn('event_id', 'text', (column) => column.notNull())
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('server', 'text', (column) => column.notNull())
      .addColumn('version', 'text', (column) => column.notNull())
      .addColumn('json', 'text', (column) => column.notNull())
      .execute();
    await db.schema
      .createIndex('outside_events_by_id')
      .unique()
      .on('outside_events')
      .columns(['room_nid', 'event_id'])
      .execute();
    const moved = sql`from events where stream is null and flags >= ${sql.lit(outsideFlag)}`;
    await sql`
      insert into outside_events (nid, room_nid, event_id, user_id, server, version, json)
      select nid, room_nid, event_id,
        coalesce((select min(user_id) from memberships where memberships.room_nid = events.room_nid
          and memberships.event_nid = events.nid), ''),
        '',
        (select version from rooms where rooms.room_nid = events.room_nid), json
      ${moved}
    `.execute(db);
    await sql`delete ${moved}`.execute(db);
  },
};
