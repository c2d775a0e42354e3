import type { Migration } from '../kernel/database/index.ts';

export const appserviceMigrations: readonly Migration[] = [
  {
    name: 'appservices/0001-transactions',
    async up({ db }) {
      await db.schema
        .createTable('appservice_outbox')
        .addColumn('service_id', 'text', (column) => column.notNull())
        .addColumn('position', 'bigint', (column) => column.notNull())
        .addColumn('kind', 'text', (column) => column.notNull())
        .addColumn('event_nid', 'bigint', (column) => column.notNull())
        .addColumn('subject', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('appservice_outbox_key', ['service_id', 'position', 'kind', 'subject'])
        .execute();
      await db.schema
        .createTable('appservice_queues')
        .addColumn('service_id', 'text', (column) => column.primaryKey())
        .addColumn('txn_id', 'bigint', (column) => column.notNull())
        .addColumn('body', 'text')
        .addColumn('spelling', 'text')
        .execute();
      await db.schema
        .createTable('appservice_progress')
        .addColumn('id', 'bigint', (column) => column.primaryKey())
        .addColumn('position', 'bigint', (column) => column.notNull())
        .execute();
    },
  },
];
