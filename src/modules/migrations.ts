import type { Migration } from '../kernel/database/index.ts';

export const moduleMigrations: readonly Migration[] = [
  {
    name: 'modules/0001-stores',
    async up({ db }) {
      await db.schema
        .createTable('module_entries')
        .addColumn('store', 'text', (column) => column.notNull())
        .addColumn('entry_key', 'text', (column) => column.notNull())
        .addColumn('value', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('module_entries_pk', ['store', 'entry_key'])
        .execute();
      await db.schema
        .createTable('module_store_migrations')
        .addColumn('store', 'text', (column) => column.notNull())
        .addColumn('name', 'text', (column) => column.notNull())
        .addColumn('applied_ts', 'bigint', (column) => column.notNull())
        .addPrimaryKeyConstraint('module_store_migrations_pk', ['store', 'name'])
        .execute();
    },
  },
];
