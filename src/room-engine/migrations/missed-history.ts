import type { Migration } from '../../kernel/database/index.ts';

/** Adds the columns that limit and schedule the backfill of gaps, and the former forward extremities of rooms. */
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
