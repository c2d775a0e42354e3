import type { Migration } from '../kernel/database/index.ts';

export const thirdPartyIdMigrations: readonly Migration[] = [
  {
    name: 'third-party-ids/0001-addresses',
    async up({ db, clustered }) {
      await db.schema
        .createTable('third_party_ids')
        .addColumn('medium', 'text', (column) => column.notNull())
        .addColumn('address', 'text', (column) => column.notNull())
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('validated_at', 'bigint', (column) => column.notNull())
        .addColumn('added_at', 'bigint', (column) => column.notNull())
        .addPrimaryKeyConstraint('third_party_ids_pk', ['medium', 'address'])
        .$call(clustered)
        .execute();
      await db.schema
        .createIndex('third_party_ids_by_user')
        .on('third_party_ids')
        .column('user_id')
        .execute();
      await db.schema
        .createTable('published_third_party_ids')
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('medium', 'text', (column) => column.notNull())
        .addColumn('address', 'text', (column) => column.notNull())
        .addColumn('server', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('published_third_party_ids_pk', ['user_id', 'medium', 'address', 'server'])
        .$call(clustered)
        .execute();
    },
  },
  {
    name: 'third-party-ids/0002-validations',
    async up({ db, clustered }) {
      await db.schema
        .createTable('validation_sessions')
        .addColumn('sid', 'text', (column) => column.primaryKey())
        .addColumn('medium', 'text', (column) => column.notNull())
        .addColumn('address', 'text', (column) => column.notNull())
        .addColumn('secret_hash', 'text', (column) => column.notNull())
        .addColumn('purpose', 'text', (column) => column.notNull())
        .addColumn('send_attempt', 'bigint', (column) => column.notNull())
        .addColumn('remote_sid', 'text')
        .addColumn('validated_at', 'bigint')
        .addColumn('expires_at', 'bigint', (column) => column.notNull())
        .$call(clustered)
        .execute();
      await db.schema
        .createIndex('validation_sessions_by_address')
        .on('validation_sessions')
        .columns(['address', 'secret_hash'])
        .execute();
      await db.schema
        .createIndex('validation_sessions_by_expiry')
        .on('validation_sessions')
        .columns(['expires_at', 'sid'])
        .execute();
      await db.schema
        .createTable('validation_tokens')
        .addColumn('token_hash', 'text', (column) => column.primaryKey())
        .addColumn('sid', 'text', (column) => column.notNull())
        .addColumn('next_link', 'text')
        .addColumn('expires_at', 'bigint', (column) => column.notNull())
        .$call(clustered)
        .execute();
      await db.schema
        .createIndex('validation_tokens_by_session')
        .on('validation_tokens')
        .column('sid')
        .execute();
    },
  },
];
