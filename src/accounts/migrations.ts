import type { Migration, SchemaBuilder } from '../kernel/database/index.ts';
import { moderationMigration } from './moderation-migration.ts';

const flags = ['is_guest', 'is_admin', 'is_deactivated', 'is_erased', 'is_locked', 'is_suspended'] as const;

async function createUsers({ db }: SchemaBuilder): Promise<void> {
  let users = db.schema
    .createTable('users')
    .addColumn('user_id', 'text', (column) => column.primaryKey())
    .addColumn('folded_id', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('password_hash', 'text')
    .addColumn('user_type', 'text')
    .addColumn('appservice_id', 'text');
  for (const flag of flags)
    users = users.addColumn(flag, 'integer', (column) => column.notNull().defaultTo(0));
  await users.execute();
  await db.schema.createIndex('users_folded_id').on('users').column('folded_id').execute();
}

async function createAccessTokens({ db }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('access_tokens')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('hash', 'text', (column) => column.notNull().unique())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('device_id', 'text')
    .addColumn('refresh_token_id', 'bigint')
    .addColumn('replaces_refresh_token_id', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .addColumn('confirmed_at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('access_tokens_device')
    .on('access_tokens')
    .columns(['user_id', 'device_id'])
    .execute();
  await db.schema.createIndex('access_tokens_expiry').on('access_tokens').column('expires_at').execute();
}

async function createRefreshTokens({ db }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('refresh_tokens')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('hash', 'text', (column) => column.notNull().unique())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('device_id', 'text', (column) => column.notNull())
    .addColumn('replaces_id', 'bigint')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .addColumn('session_expires_at', 'bigint')
    .execute();
  await db.schema
    .createIndex('refresh_tokens_device')
    .on('refresh_tokens')
    .columns(['user_id', 'device_id'])
    .execute();
  await db.schema.createIndex('refresh_tokens_expiry').on('refresh_tokens').column('expires_at').execute();
}

async function createInteractiveSessions({ db }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('interactive_sessions')
    .addColumn('id_hash', 'text', (column) => column.primaryKey())
    .addColumn('user_id', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('operation', 'text', (column) => column.notNull())
    .addColumn('body_digest', 'text', (column) => column.notNull())
    .addColumn('sealed_body', 'bytea', (column) => column.notNull())
    .addColumn('completed', 'text', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('interactive_sessions_created_at')
    .on('interactive_sessions')
    .column('created_at')
    .execute();
}

async function createRegistrationTokens({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('registration_tokens')
      .addColumn('token', 'text', (column) => column.primaryKey())
      .addColumn('uses_allowed', 'integer')
      .addColumn('completed', 'integer', (column) => column.notNull())
      .addColumn('expiry_time', 'bigint'),
  ).execute();
  await db.schema.alterTable('interactive_sessions').addColumn('registration_token', 'text').execute();
  await db.schema
    .createIndex('interactive_sessions_token')
    .on('interactive_sessions')
    .column('registration_token')
    .execute();
}

async function createUserConsents({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('user_consents')
      .addColumn('user_id', 'text', (column) => column.primaryKey())
      .addColumn('version', 'text', (column) => column.notNull())
      .addColumn('agreed_at', 'bigint', (column) => column.notNull()),
  ).execute();
}

async function createLoginTokens({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('login_tokens')
      .addColumn('hash', 'text', (column) => column.primaryKey())
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('expires_at', 'bigint', (column) => column.notNull()),
  ).execute();
  await db.schema.createIndex('login_tokens_expiry').on('login_tokens').column('expires_at').execute();
}

export const accountMigrations: readonly Migration[] = [
  {
    name: 'accounts/0001-accounts',
    async up(schema) {
      await createUsers(schema);
      await createAccessTokens(schema);
      await createRefreshTokens(schema);
      await createInteractiveSessions(schema);
    },
  },
  {
    name: 'accounts/0002-answered-sessions',
    async up({ db }) {
      await db.schema
        .alterTable('interactive_sessions')
        .addColumn('answered', 'integer', (column) => column.notNull().defaultTo(0))
        .execute();
    },
  },
  {
    name: 'accounts/0003-registration-tokens',
    up: createRegistrationTokens,
  },
  moderationMigration,
  {
    name: 'accounts/0004-login-tokens',
    up: createLoginTokens,
  },
  {
    name: 'accounts/0005-consents',
    up: createUserConsents,
  },
  {
    name: 'accounts/0006-login-token-details',
    async up({ db }) {
      await db.schema.alterTable('login_tokens').addColumn('details', 'text').execute();
    },
  },
  {
    name: 'accounts/0007-users-by-creation',
    async up({ db }) {
      await db.schema
        .createIndex('users_by_creation')
        .on('users')
        .columns(['created_at', 'user_id'])
        .execute();
    },
  },
  {
    // Lists of users are filtered by these columns. The index has all of them, so that counts and searches read only
    // the index.
    name: 'accounts/0008-users-by-folded-id',
    async up({ db }) {
      await db.schema.dropIndex('users_folded_id').execute();
      await db.schema
        .createIndex('users_by_folded_id')
        .on('users')
        .columns(['folded_id', 'user_id', 'is_deactivated', 'is_locked', 'is_guest', 'is_admin'])
        .columns(['is_shadow_banned', 'user_type'])
        .execute();
    },
  },
  {
    // The partial index has the deactivated, locked and guest users. Lists of users omit these by default.
    name: 'accounts/0009-unlisted-users',
    async up({ run }) {
      await run(
        `CREATE INDEX users_unlisted ON users (user_id)
         WHERE is_deactivated = 1 OR is_locked = 1 OR is_guest = 1`,
      );
    },
  },
  {
    // Lists of users can be ordered by type. PostgreSQL limits the length of values in an index.
    name: 'accounts/0010-users-by-type',
    async up({ run }) {
      await run(`CREATE INDEX users_by_type ON users ((substr(coalesce(user_type, ''), 1, 200)), user_id)`);
    },
  },
];
