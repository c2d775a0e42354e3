import type { Migration } from '../kernel/database/index.ts';

export const urlPreviewMigrations: readonly Migration[] = [
  {
    name: 'url-previews/0001-previews',
    async up({ db, clustered }) {
      await db.schema
        .createTable('url_previews')
        .addColumn('url_hash', 'text', (column) => column.notNull())
        .addColumn('hour', 'bigint', (column) => column.notNull())
        .addColumn('response', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('url_previews_key', ['url_hash', 'hour'])
        .$call(clustered)
        .execute();
      await db.schema.createIndex('url_previews_by_hour').on('url_previews').column('hour').execute();
    },
  },
];
