import { type Kysely, sql } from 'kysely';
import type { Migration, SchemaBuilder } from '../../kernel/database/index.ts';
import { getRoomVersion, type Pdu, parseJsonObject, roomEventOf } from '../../protocol/index.ts';
import type { RoomTables } from '../tables.ts';

/** Maximum number of events that one query reads. */
const eventsAtOnce = 500;

/**
 * Adds the tables and columns for events of remote servers: auth chains, backward extremities, and rooms that
 * this server has not entered.
 */
export const federationMigration: Migration = {
  name: 'rooms/0007-federation',
  async up(schema) {
    const { db, clustered } = schema;
    await db.schema
      .createTable('event_auth')
      .addColumn('event_nid', 'bigint', (column) => column.notNull())
      .addColumn('auth_nid', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('event_auth_key', ['event_nid', 'auth_nid'])
      .$call(clustered)
      .execute();
    await db.schema
      .createTable('event_places')
      .addColumn('position', 'bigint', (column) => column.primaryKey())
      .addColumn('nid', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema
      .createTable('backward_extremities')
      .addColumn('room_nid', 'bigint', (column) => column.notNull())
      .addColumn('event_id', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('backward_extremities_key', ['room_nid', 'event_id'])
      .$call(clustered)
      .execute();
    await db.schema
      .createTable('pending_redactions')
      .addColumn('target_id', 'text', (column) => column.notNull())
      .addColumn('redaction_nid', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('pending_redactions_key', ['target_id', 'redaction_nid'])
      .$call(clustered)
      .execute();
    await db.schema
      .createTable('stripped_state')
      .addColumn('room_nid', 'bigint', (column) => column.notNull())
      .addColumn('user_id', 'text', (column) => column.notNull())
      .addColumn('json', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('stripped_state_key', ['room_nid', 'user_id'])
      .$call(clustered)
      .execute();
    await db.schema.alterTable('rooms').addColumn('partial_state', 'text').execute();
    await db.schema
      .alterTable('current_state')
      .addColumn('stream', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
    await sql`update current_state set stream = event_nid`.execute(db);
    await fillAuthEdges(schema);
  },
};

/**
 * Fills the auth edges of stored events. Auth events have a lower nid than the events that refer to them, so they are
 * already stored.
 */
async function fillAuthEdges({ db }: SchemaBuilder): Promise<void> {
  const tables = db as unknown as Kysely<RoomTables>;
  for (let after = 0; ; ) {
    const rows = await tables
      .selectFrom('events')
      .innerJoin('rooms', 'rooms.room_nid', 'events.room_nid')
      .select(['events.nid', 'events.event_id', 'events.json', 'rooms.version'])
      .where('events.nid', '>', after)
      .orderBy('events.nid')
      .limit(eventsAtOnce)
      .execute();
    const authIds = rows.flatMap((row) => authIdsOfState(row).map((id) => ({ nid: row.nid, id })));
    const nids = new Map<string, number>();
    const ids = [...new Set(authIds.map(({ id }) => id))];
    for (let start = 0; start < ids.length; start += eventsAtOnce) {
      const authRows = await tables
        .selectFrom('events')
        .select(['nid', 'event_id'])
        .where('event_id', 'in', ids.slice(start, start + eventsAtOnce))
        .execute();
      for (const row of authRows) nids.set(row.event_id, row.nid);
    }
    const edges = new Map<string, { event_nid: number; auth_nid: number }>();
    for (const { nid, id } of authIds) {
      const auth = nids.get(id);
      if (auth !== undefined) edges.set(`${nid}:${auth}`, { event_nid: nid, auth_nid: auth });
    }
    const values = [...edges.values()];
    for (let start = 0; start < values.length; start += eventsAtOnce) {
      await tables
        .insertInto('event_auth')
        .values(values.slice(start, start + eventsAtOnce))
        .execute();
    }
    const last = rows.at(-1);
    if (!last) return;
    after = last.nid;
  }
}

/** The auth events of a state event; empty for message events. */
function authIdsOfState(row: { event_id: string; json: string; version: string }): readonly string[] {
  const version = getRoomVersion(row.version);
  if (!version) throw new Error(`the database contains a room of the unknown version ${row.version}`);
  const numbers = version.strictCanonicalJson ? 'values' : 'as written';
  const event = roomEventOf(parseJsonObject(row.json, { numbers }) as Pdu, version, row.event_id);
  return event.stateKey === undefined ? [] : event.authEventIds;
}
