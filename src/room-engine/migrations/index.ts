import type { Migration } from '../../kernel/database/index.ts';
import { blockedRoomsMigration } from './blocked-rooms.ts';
import { columnNamesMigration } from './column-names.ts';
import { federationMigration } from './federation.ts';
import { forgottenRoomsMigration } from './forgotten-rooms.ts';
import { missedHistoryMigration } from './missed-history.ts';
import { outsideEventsMigration } from './outside-events.ts';
import { redactionsWithoutEffectMigration } from './redactions-without-effect.ts';
import { addIndexByRoom, createStateGroupTables } from './state-groups.ts';
import { withheldRedactionsMigration } from './withheld-redactions.ts';

export const roomMigrations: readonly Migration[] = [
  {
    name: 'rooms/0001-events',
    async up({ db, clustered }) {
      await db.schema
        .createTable('rooms')
        .addColumn('room_nid', 'bigint', (column) => column.primaryKey())
        .addColumn('room_id', 'text', (column) => column.notNull().unique())
        .addColumn('version', 'text', (column) => column.notNull())
        .addColumn('extremities', 'text', (column) => column.notNull())
        .addColumn('state_group', 'bigint')
        .addColumn('created_ts', 'bigint', (column) => column.notNull())
        .execute();
      await db.schema
        .createTable('events')
        .addColumn('nid', 'bigint', (column) => column.primaryKey())
        .addColumn('event_id', 'text', (column) => column.notNull())
        .addColumn('room_nid', 'bigint', (column) => column.notNull())
        .addColumn('depth', 'bigint', (column) => column.notNull())
        .addColumn('stream', 'bigint')
        .addColumn('state_group', 'bigint')
        .addColumn('state_before', 'bigint')
        .addColumn('replaces', 'bigint')
        .addColumn('flags', 'integer', (column) => column.notNull())
        .addColumn('redacted_by', 'bigint')
        .addColumn('json', 'text', (column) => column.notNull())
        .execute();
      await db.schema.createIndex('events_by_id').unique().on('events').column('event_id').execute();
      await db.schema
        .createIndex('events_by_stream')
        .on('events')
        .columns(['room_nid', 'stream'])
        .where('stream' as never, 'is not', null)
        .execute();
      await db.schema
        .createIndex('events_by_depth')
        .on('events')
        .columns(['room_nid', 'depth', 'stream'])
        .where('stream' as never, 'is not', null)
        .execute();
      await db.schema
        .createTable('event_transactions')
        .addColumn('scope', 'bigint', (column) => column.notNull())
        .addColumn('event_nid', 'bigint', (column) => column.notNull())
        .addColumn('txn_id', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('event_transactions_key', ['scope', 'event_nid'])
        .$call(clustered)
        .execute();
    },
  },
  {
    name: 'rooms/0002-state',
    async up(schema) {
      const { db, clustered } = schema;
      await db.schema
        .createTable('state_keys')
        .addColumn('nid', 'bigint', (column) => column.primaryKey())
        .addColumn('type', 'text', (column) => column.notNull())
        .addColumn('state_key', 'text', (column) => column.notNull())
        .addUniqueConstraint('state_keys_by_name', ['type', 'state_key'])
        .execute();
      await createStateGroupTables(schema);
      await db.schema
        .createTable('current_state')
        .addColumn('room_nid', 'bigint', (column) => column.notNull())
        .addColumn('key_nid', 'bigint', (column) => column.notNull())
        .addColumn('event_nid', 'bigint', (column) => column.notNull())
        .addColumn('membership', 'text')
        .addPrimaryKeyConstraint('current_state_key', ['room_nid', 'key_nid'])
        .$call(clustered)
        .execute();
      await db.schema
        .createTable('state_deltas')
        .addColumn('room_nid', 'bigint', (column) => column.notNull())
        .addColumn('stream', 'bigint', (column) => column.notNull())
        .addColumn('key_nid', 'bigint', (column) => column.notNull())
        .addColumn('event_nid', 'bigint')
        .addPrimaryKeyConstraint('state_deltas_key', ['room_nid', 'stream', 'key_nid'])
        .$call(clustered)
        .execute();
      await db.schema
        .createIndex('state_deltas_by_key')
        .on('state_deltas')
        .columns(['room_nid', 'key_nid', 'stream'])
        .execute();
    },
  },
  {
    name: 'rooms/0003-memberships-and-aliases',
    async up({ db, clustered }) {
      await db.schema
        .createTable('memberships')
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('room_nid', 'bigint', (column) => column.notNull())
        .addColumn('membership', 'text', (column) => column.notNull())
        .addColumn('event_nid', 'bigint', (column) => column.notNull())
        .addColumn('stream', 'bigint', (column) => column.notNull())
        .addColumn('forgotten', 'integer', (column) => column.notNull())
        .addPrimaryKeyConstraint('memberships_key', ['user_id', 'room_nid'])
        .$call(clustered)
        .execute();
      await db.schema.createIndex('memberships_by_room').on('memberships').column('room_nid').execute();
      await db.schema
        .createTable('room_aliases')
        .addColumn('alias', 'text', (column) => column.primaryKey())
        .addColumn('room_id', 'text', (column) => column.notNull())
        .addColumn('creator', 'text', (column) => column.notNull())
        .execute();
      await db.schema.createIndex('room_aliases_by_room').on('room_aliases').column('room_id').execute();
      await db.schema
        .createTable('published_rooms')
        .addColumn('room_id', 'text', (column) => column.notNull())
        .addColumn('network', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('published_rooms_key', ['room_id', 'network'])
        .$call(clustered)
        .execute();
    },
  },
  {
    name: 'rooms/0004-event-times',
    async up({ db, clustered }) {
      await db.schema
        .createTable('event_times')
        .addColumn('room_nid', 'bigint', (column) => column.notNull())
        .addColumn('ts', 'bigint', (column) => column.notNull())
        .addColumn('nid', 'bigint', (column) => column.notNull())
        .addPrimaryKeyConstraint('event_times_key', ['room_nid', 'ts', 'nid'])
        .$call(clustered)
        .execute();
    },
  },
  {
    name: 'rooms/0005-redacted-events',
    async up({ db }) {
      await db.schema
        .createTable('redacted_events')
        .addColumn('event_nid', 'bigint', (column) => column.primaryKey())
        .addColumn('redacted_ts', 'bigint', (column) => column.notNull())
        .execute();
      await db.schema
        .createIndex('redacted_events_by_time')
        .on('redacted_events')
        .column('redacted_ts')
        .execute();
    },
  },
  {
    name: 'rooms/0006-transaction-marks',
    async up({ db }) {
      await db.schema
        .createTable('transaction_marks')
        .addColumn('position', 'bigint', (column) => column.primaryKey())
        .addColumn('ts', 'bigint', (column) => column.notNull())
        .execute();
    },
  },
  federationMigration,
  forgottenRoomsMigration,
  missedHistoryMigration,
  outsideEventsMigration,
  withheldRedactionsMigration,
  redactionsWithoutEffectMigration,
  blockedRoomsMigration,
  { name: 'rooms/0017-state-groups-by-room', up: addIndexByRoom },
  columnNamesMigration,
];
