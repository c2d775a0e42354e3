import type { Migration, SchemaBuilder } from '../kernel/database/index.ts';

async function createDeviceKeys({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('device_keys')
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('device_id', 'text', (column) => column.notNull())
      .addColumn('keys', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('device_keys_key', ['user_id', 'device_id']),
  ).execute();
}

async function createOneTimeKeys({ db, clustered }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('one_time_keys')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('user_id', 'text', (column) => column.notNull())
    .addColumn('device_id', 'text', (column) => column.notNull())
    .addColumn('algorithm', 'text', (column) => column.notNull())
    .addColumn('key_id', 'text', (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('digest', 'text', (column) => column.notNull())
    .addUniqueConstraint('one_time_keys_by_key_id', ['user_id', 'device_id', 'algorithm', 'key_id'])
    .execute();
  await db.schema
    .createIndex('one_time_keys_by_age')
    .on('one_time_keys')
    .columns(['user_id', 'device_id', 'algorithm', 'id'])
    .execute();
  await clustered(
    db.schema
      .createTable('claimed_one_time_keys')
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('device_id', 'text', (column) => column.notNull())
      .addColumn('id', 'bigint', (column) => column.notNull())
      .addColumn('algorithm', 'text', (column) => column.notNull())
      .addColumn('key_id', 'text', (column) => column.notNull())
      .addColumn('digest', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('claimed_one_time_keys_key', ['user_id', 'device_id', 'id']),
  ).execute();
}

async function createFallbackKeys({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('fallback_keys')
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('device_id', 'text', (column) => column.notNull())
      .addColumn('algorithm', 'text', (column) => column.notNull())
      .addColumn('key_id', 'text', (column) => column.notNull())
      .addColumn('key', 'text', (column) => column.notNull())
      .addColumn('digest', 'text', (column) => column.notNull())
      .addColumn('used', 'integer', (column) => column.notNull())
      .addPrimaryKeyConstraint('fallback_keys_key', ['user_id', 'device_id', 'algorithm']),
  ).execute();
}

async function createCrossSigning({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('cross_signing_keys')
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('usage', 'text', (column) => column.notNull())
      .addColumn('public_key', 'text', (column) => column.notNull())
      .addColumn('keys', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('cross_signing_keys_key', ['user_id', 'usage']),
  ).execute();
  await clustered(
    db.schema
      .createTable('user_signatures')
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('target_user_id', 'text', (column) => column.notNull())
      .addColumn('target_key', 'text', (column) => column.notNull())
      .addColumn('key_id', 'text', (column) => column.notNull())
      .addColumn('signature', 'text', (column) => column.notNull())
      .addColumn('position', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('user_signatures_key', ['user_id', 'target_user_id']),
  ).execute();
  await db.schema
    .createIndex('user_signatures_by_target')
    .on('user_signatures')
    .column('target_user_id')
    .execute();
}

async function createBackups({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('room_key_versions')
      .addColumn('user_id', 'text', (column) => column.primaryKey())
      .addColumn('last_version', 'bigint', (column) => column.notNull()),
  ).execute();
  await clustered(
    db.schema
      .createTable('room_key_backups')
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('version', 'bigint', (column) => column.notNull())
      .addColumn('algorithm', 'text', (column) => column.notNull())
      .addColumn('auth_data', 'text', (column) => column.notNull())
      .addColumn('etag', 'bigint', (column) => column.notNull())
      .addColumn('key_count', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('room_key_backups_key', ['user_id', 'version']),
  ).execute();
  await clustered(
    db.schema
      .createTable('room_keys')
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('version', 'bigint', (column) => column.notNull())
      .addColumn('room_id', 'text', (column) => column.notNull())
      .addColumn('session_id', 'text', (column) => column.notNull())
      .addColumn('first_message_index', 'bigint', (column) => column.notNull())
      .addColumn('forwarded_count', 'bigint', (column) => column.notNull())
      .addColumn('is_verified', 'integer', (column) => column.notNull())
      .addColumn('session_data', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('room_keys_key', ['user_id', 'version', 'room_id', 'session_id']),
  ).execute();
}

async function createDehydratedDevices({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('dehydrated_devices')
      .addColumn('user_id', 'text', (column) => column.primaryKey())
      .addColumn('device_id', 'text', (column) => column.notNull())
      .addColumn('device_data', 'text', (column) => column.notNull()),
  ).execute();
}

async function createRemoteLists({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('remote_device_lists')
      .addColumn('user_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('server', 'text', (column) => column.notNull())
      .addColumn('stream_ids', 'text', (column) => column.notNull())
      .addColumn('stale', 'integer', (column) => column.notNull())
      .addColumn('revision', 'bigint', (column) => column.notNull())
      .addColumn('master_key', 'text')
      .addColumn('self_signing_key', 'text'),
  ).execute();
  await db.schema
    .createIndex('remote_device_lists_stale')
    .on('remote_device_lists')
    .columns(['server', 'stale', 'user_id'])
    .execute();
  await clustered(
    db.schema
      .createTable('remote_devices')
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('device_id', 'text', (column) => column.notNull())
      .addColumn('keys', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('remote_devices_key', ['user_id', 'device_id']),
  ).execute();
}

export const e2eeMigrations: readonly Migration[] = [
  {
    name: 'e2ee/0001-keys',
    async up(schema) {
      await createDeviceKeys(schema);
      await createOneTimeKeys(schema);
      await createFallbackKeys(schema);
    },
  },
  { name: 'e2ee/0002-cross-signing', up: createCrossSigning },
  { name: 'e2ee/0003-backups', up: createBackups },
  { name: 'e2ee/0004-dehydrated-devices', up: createDehydratedDevices },
  { name: 'e2ee/0005-remote-device-lists', up: createRemoteLists },
];
