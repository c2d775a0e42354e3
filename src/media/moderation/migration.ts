import type { Migration } from '../../kernel/database/index.ts';

/** Adds columns for the time when media was last read, for quarantine and for protection from it. */
export const mediaModerationMigration: Migration = {
  name: 'media/0002-moderation',
  async up({ db, run }) {
    for (const table of ['local_media', 'remote_media']) {
      await db.schema.alterTable(table).addColumn('last_access_at', 'bigint').execute();
      await db.schema.alterTable(table).addColumn('quarantined_by', 'text').execute();
      await run(`CREATE INDEX ${table}_by_hash ON ${table} (sha256)`);
    }
    await db.schema
      .alterTable('local_media')
      .addColumn('protected', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
  },
};
