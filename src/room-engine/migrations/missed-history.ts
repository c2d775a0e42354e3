import type { Migration } from '../../kernel/database/index.ts';

/** Which gaps in the histories of rooms are to be filled though nobody reads them, and what leads to nothing newer. */
export const missedHistoryMigration: Migration = {
  name: 'rooms/0010-missed-history',
  async up({ db }) {
    await db.schema.alterTable('rooms').addColumn('loose_ends', 'text').execute();
    const table = () => db.schema.alterTable('backward_extremities');
    await table().addColumn('answers_left', 'integer').execute();
    await table().addColumn('named_by', 'bigint').execute();
    await table()
      .addColumn('attempts', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await table()
      .addColumn('retry_ts', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema
      .createIndex('backward_extremities_missed')
      .on('backward_extremities')
      .column('room_nid')
      .where('answers_left' as never, 'is not', null)
      .execute();
  },
};
