import type { Migration, SchemaBuilder } from '../kernel/database/index.ts';

async function createClients({ db }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('oauth_clients')
    .addColumn('client_id', 'text', (column) => column.primaryKey())
    .addColumn('metadata', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('last_used_at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema.createIndex('oauth_clients_by_use').on('oauth_clients').column('last_used_at').execute();
}

async function createSessions({ db }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('oauth_sessions')
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('device_id', 'text', (column) => column.notNull())
    .addColumn('client_id', 'text', (column) => column.notNull())
    .addColumn('scope', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('oauth_sessions_key', ['user_id', 'device_id'])
    .execute();
  await db.schema.createIndex('oauth_sessions_by_client').on('oauth_sessions').column('client_id').execute();
  await db.schema
    .createTable('oauth_exchanged_tokens')
    .addColumn('hash', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('device_id', 'text', (column) => column.notNull())
    .addColumn('exchanged_at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('oauth_exchanged_tokens_by_device')
    .on('oauth_exchanged_tokens')
    .columns(['user_id', 'device_id', 'exchanged_at'])
    .execute();
}

async function createGrants({ db }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('oauth_codes')
    .addColumn('hash', 'text', (column) => column.primaryKey())
    .addColumn('client_id', 'text', (column) => column.notNull())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('device_id', 'text', (column) => column.notNull())
    .addColumn('scope', 'text', (column) => column.notNull())
    .addColumn('redirect_uri', 'text', (column) => column.notNull())
    .addColumn('code_challenge', 'text', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addColumn('redeemed', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
  await db.schema.createIndex('oauth_codes_by_user').on('oauth_codes').column('user_id').execute();
  await db.schema.createIndex('oauth_codes_by_expiry').on('oauth_codes').column('expires_at').execute();
  await db.schema
    .createTable('oauth_device_grants')
    .addColumn('hash', 'text', (column) => column.primaryKey())
    .addColumn('user_code', 'text', (column) => column.notNull().unique())
    .addColumn('client_id', 'text', (column) => column.notNull())
    .addColumn('device_id', 'text', (column) => column.notNull())
    .addColumn('scope', 'text', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addColumn('polled_at', 'bigint', (column) => column.notNull())
    .addColumn('decision', 'text', (column) => column.notNull())
    .addColumn('user_id', 'text')
    .execute();
  await db.schema
    .createIndex('oauth_device_grants_by_expiry')
    .on('oauth_device_grants')
    .column('expires_at')
    .execute();
}

async function createBrowserSessions({ db }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('browser_sessions')
    .addColumn('hash', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('authenticated_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('browser_sessions_by_user')
    .on('browser_sessions')
    .columns(['user_id', 'expires_at'])
    .execute();
  await db.schema
    .createIndex('browser_sessions_by_expiry')
    .on('browser_sessions')
    .column('expires_at')
    .execute();
  await db.schema
    .createTable('cross_signing_resets')
    .addColumn('user_id', 'text', (column) => column.primaryKey())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .execute();
}

export const oauthMigrations: readonly Migration[] = [
  {
    name: 'oauth/0001-authorization-server',
    async up(schema) {
      await createClients(schema);
      await createSessions(schema);
      await createGrants(schema);
      await createBrowserSessions(schema);
    },
  },
  {
    name: 'oauth/0002-provider-sessions',
    async up({ db }) {
      for (const table of ['browser_sessions', 'oauth_codes', 'oauth_device_grants']) {
        await db.schema.alterTable(table).addColumn('provider_session', 'text').execute();
      }
    },
  },
];
