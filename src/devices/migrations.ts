import type { Migration, SchemaBuilder } from '../kernel/database/index.ts';

async function createDevices({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('devices')
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('device_id', 'text', (column) => column.notNull())
      .addColumn('display_name', 'text')
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('last_seen_at', 'bigint')
      .addColumn('last_seen_ip', 'text')
      .addColumn('last_seen_user_agent', 'text')
      .addPrimaryKeyConstraint('devices_key', ['user_id', 'device_id']),
  ).execute();
}

async function createUserIps({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('user_ips')
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('device_id', 'text', (column) => column.notNull())
      .addColumn('ip', 'text', (column) => column.notNull())
      .addColumn('user_agent', 'text', (column) => column.notNull())
      .addColumn('last_seen_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('user_ips_key', ['user_id', 'device_id', 'ip']),
  ).execute();
  await db.schema.createIndex('user_ips_last_seen').on('user_ips').column('last_seen_at').execute();
}

async function createDeviceListChanges({ db }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('device_list_changes')
    .addColumn('user_id', 'text', (column) => column.primaryKey())
    .addColumn('position', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('device_list_changes_position')
    .on('device_list_changes')
    .column('position')
    .execute();
}

async function createUnannounced({ db, clustered }: SchemaBuilder): Promise<void> {
  await clustered(
    db.schema
      .createTable('unannounced_devices')
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('device_id', 'text', (column) => column.notNull())
      .addColumn('position', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('unannounced_devices_key', ['user_id', 'device_id']),
  ).execute();
}

export const deviceMigrations: readonly Migration[] = [
  {
    name: 'devices/0001-devices',
    async up(schema) {
      await createDevices(schema);
      await createUserIps(schema);
      await createDeviceListChanges(schema);
    },
  },
  {
    name: 'devices/0002-dehydrated',
    async up({ db }) {
      await db.schema
        .alterTable('devices')
        .addColumn('dehydrated', 'integer', (column) => column.notNull().defaultTo(0))
        .execute();
    },
  },
  { name: 'devices/0003-unannounced', up: createUnannounced },
  {
    name: 'devices/0004-devices-by-id',
    async up({ db }) {
      await db.schema.createIndex('devices_by_id').on('devices').column('device_id').execute();
    },
  },
  {
    name: 'devices/0005-devices-by-last-activity',
    async up({ run }) {
      await run(
        'CREATE INDEX devices_by_last_seen ON devices (last_seen_at, user_id) WHERE last_seen_at IS NOT NULL',
      );
    },
  },
  {
    name: 'devices/0006-user-activity',
    async up({ db, run, clustered }) {
      await clustered(
        db.schema
          .createTable('user_activity')
          .addColumn('user_id', 'text', (column) => column.primaryKey())
          .addColumn('last_seen_at', 'bigint', (column) => column.notNull()),
      ).execute();
      await run(
        `INSERT INTO user_activity (user_id, last_seen_at) SELECT user_id, max(last_seen_at) FROM devices
         WHERE last_seen_at IS NOT NULL GROUP BY user_id`,
      );
      await db.schema
        .createIndex('user_activity_by_time')
        .on('user_activity')
        .columns(['last_seen_at', 'user_id'])
        .execute();
      await db.schema.dropIndex('devices_by_last_seen').execute();
    },
  },
];
