import type { Migration } from '../kernel/database/index.ts';

export const ssoMigrations: readonly Migration[] = [
  {
    name: 'sso/0001-external-ids',
    async up({ db, clustered }) {
      await db.schema
        .createTable('external_ids')
        .addColumn('auth_provider', 'text', (column) => column.notNull())
        .addColumn('external_id', 'text', (column) => column.notNull())
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('external_ids_pk', ['auth_provider', 'external_id'])
        .$call(clustered)
        .execute();
      await db.schema.createIndex('external_ids_by_user').on('external_ids').column('user_id').execute();
      await db.schema
        .createTable('provider_sessions')
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('device_id', 'text', (column) => column.notNull())
        .addColumn('auth_provider', 'text', (column) => column.notNull())
        .addColumn('external_id', 'text', (column) => column.notNull())
        .addColumn('session_id', 'text')
        .addPrimaryKeyConstraint('provider_sessions_pk', ['user_id', 'device_id'])
        .$call(clustered)
        .execute();
      await db.schema
        .createIndex('provider_sessions_by_external_id')
        .on('provider_sessions')
        .columns(['auth_provider', 'external_id'])
        .execute();
      await db.schema
        .createIndex('provider_sessions_by_session')
        .on('provider_sessions')
        .columns(['auth_provider', 'session_id'])
        .execute();
    },
  },
  {
    name: 'sso/0002-used-assertions',
    async up({ db, clustered }) {
      await db.schema
        .createTable('used_assertions')
        .addColumn('assertion_hash', 'text', (column) => column.primaryKey())
        .addColumn('expires_at', 'bigint', (column) => column.notNull())
        .$call(clustered)
        .execute();
      await db.schema
        .createIndex('used_assertions_by_expiry')
        .on('used_assertions')
        .column('expires_at')
        .execute();
    },
  },
  {
    name: 'sso/0003-issuers-of-external-ids',
    async up({ db }) {
      await db.schema.alterTable('external_ids').addColumn('issuer', 'text').execute();
    },
  },
];
