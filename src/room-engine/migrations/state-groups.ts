import type { Migration, SchemaBuilder } from '../../kernel/database/index.ts';

/** The tables of state groups. These tables may have a database of their own (option `databases`). */
export const stateGroupTables: readonly string[] = [
  'state_groups',
  'state_group_edges',
  'state_groups_state',
];

/**
 * Name of the stored upper bound of the ids of state groups; it is in the same database as the tables of state groups.
 */
export const stateGroupIds = 'state_groups';

/** Creates the tables of `stateGroupTables`. */
export async function createStateGroupTables({ db, clustered }: SchemaBuilder): Promise<void> {
  await db.schema
    .createTable('state_groups')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('room_nid', 'bigint', (column) => column.notNull())
    .addColumn('ordinal', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('state_group_edges')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('prev_id', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('state_groups_state')
    .addColumn('group_id', 'bigint', (column) => column.notNull())
    .addColumn('key_nid', 'bigint', (column) => column.notNull())
    .addColumn('event_nid', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('state_groups_state_key', ['group_id', 'key_nid'])
    .$call(clustered)
    .execute();
}

/** Adds an index of state groups by room. A purge uses it to find the state groups of its room. */
export async function addIndexByRoom({ db }: SchemaBuilder): Promise<void> {
  await db.schema
    .createIndex('state_groups_by_room')
    .on('state_groups')
    .columns(['room_nid', 'id'])
    .execute();
}

/** The migrations of a database that has the state groups only. */
export const stateGroupMigrations: readonly Migration[] = [
  { name: 'state-groups/0001-tables', up: createStateGroupTables },
  { name: 'state-groups/0002-by-room', up: addIndexByRoom },
];
