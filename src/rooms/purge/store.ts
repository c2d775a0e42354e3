import { sql } from 'kysely';
import type { Database, Statement, Writer } from '../../kernel/database/index.ts';
import type { PurgedRoom, RoomTable } from '../../kernel/slices/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';

type Row = Readonly<Record<string, string | number>>;

/** Reads the keys of some rows of a room, without blocking writers. */
export async function someRows(
  database: Database,
  { table, column, holds, key }: RoomTable,
  room: PurgedRoom,
  limit: number,
): Promise<Row[]> {
  const value = holds === 'room id' ? room.roomId : room.roomNid;
  const columns = sql.join(key.map((name) => sql.ref(name)));
  const { rows } = await sql<Row>`
    select ${columns} from ${sql.table(table)} where ${sql.ref(column)} = ${value} limit ${sql.lit(limit)}
  `.execute(database.scanner<RoomTables>());
  return rows;
}

/** Returns the statement that deletes rows by their keys. */
export const deletionOf = ({ table, key }: RoomTable, rows: readonly Row[]): Statement => ({
  sql: `delete from ${table} where ${key.map((name) => `${name} = ?`).join(' and ')}`,
  rows: rows.map((row) => key.map((name) => row[name] ?? null)),
});

/** Whether the room's own row exists. A deletion deletes this row first, so a room without it is being deleted. */
export async function roomExists(database: Database, { roomNid }: PurgedRoom): Promise<boolean> {
  const row = await database
    .reader<RoomTables>()
    .selectFrom('rooms')
    .select('room_nid')
    .where('room_nid', '=', roomNid)
    .executeTakeFirst();
  return row !== undefined;
}

/** Whether the room is known again after its deletion, for instance by a new join: then it has another nid. */
export async function hasSuccessor(database: Database, { roomId, roomNid }: PurgedRoom): Promise<boolean> {
  const row = await database
    .reader<RoomTables>()
    .selectFrom('rooms')
    .select('room_nid')
    .where('room_id', '=', roomId)
    .where('room_nid', '<>', roomNid)
    .executeTakeFirst();
  return row !== undefined;
}

/** Counts the events of a room. */
export async function countEvents(database: Database, { roomNid }: PurgedRoom): Promise<number> {
  const { count } = await database
    .scanner<RoomTables>()
    .selectFrom('events')
    .select(({ fn }) => fn.countAll<number | string>().as('count'))
    .where('room_nid', '=', roomNid)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Reads the nids of some events of a room: first the events with a stream position, then the events without one. */
export async function someEvents(
  database: Database,
  { roomNid }: PurgedRoom,
  limit: number,
): Promise<number[]> {
  const events = () => database.scanner<RoomTables>().selectFrom('events').select('nid');
  const placed = await events()
    .where('room_nid', '=', roomNid)
    .where('stream', 'is not', null)
    .limit(limit)
    .execute();
  if (placed.length > 0) return placed.map(({ nid }) => nid);
  const unplaced = await events()
    .where('room_nid', '=', roomNid)
    .where('stream', 'is', null)
    .limit(limit)
    .execute();
  return unplaced.map(({ nid }) => nid);
}

/** Reads the ids of some state groups of a room. */
export async function someGroups(
  database: Database,
  { roomNid }: PurgedRoom,
  limit: number,
): Promise<number[]> {
  const rows = await database
    .scanner<RoomTables>()
    .selectFrom('state_groups')
    .select('id')
    .where('room_nid', '=', roomNid)
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** Deletes state groups with their deltas. */
export async function deleteGroups(writer: Writer<RoomTables>, ids: readonly number[]): Promise<void> {
  await writer.deleteFrom('state_groups_state').where('group_id', 'in', ids).execute();
  await writer.deleteFrom('state_group_edges').where('id', 'in', ids).execute();
  await writer.deleteFrom('state_groups').where('id', 'in', ids).execute();
}

/** Whether a local user has a membership in the room that is not forgotten. */
export async function isRemembered(
  database: Database,
  { roomNid }: PurgedRoom,
  serverName: string,
): Promise<boolean> {
  const row = await database
    .reader<RoomTables>()
    .selectFrom('memberships')
    .select('user_id')
    .where('room_nid', '=', roomNid)
    .where('forgotten', '=', 0)
    .where('user_id', 'like', `%:${serverName}`)
    .executeTakeFirst();
  return row !== undefined;
}

/** Whether a local user is joined to the room. */
export async function hasJoinedUsers(
  database: Database,
  { roomNid }: PurgedRoom,
  serverName: string,
): Promise<boolean> {
  const row = await database
    .reader<RoomTables>()
    .selectFrom('memberships')
    .select('user_id')
    .where('room_nid', '=', roomNid)
    .where('membership', '=', 'join')
    .where('user_id', 'like', `%:${serverName}`)
    .executeTakeFirst();
  return row !== undefined;
}

/** Reads rooms that at least one user has forgotten, in the order of their nids. @param after the last nid that was read */
export async function forgottenRooms(
  database: Database,
  after: number,
  limit: number,
): Promise<PurgedRoom[]> {
  const rows = await database
    .scanner<RoomTables>()
    .selectFrom('memberships')
    .innerJoin('rooms', 'rooms.room_nid', 'memberships.room_nid')
    .select(['rooms.room_nid', 'rooms.room_id'])
    .distinct()
    .where('memberships.forgotten', '=', 1)
    .where('memberships.room_nid', '>', after)
    .orderBy('rooms.room_nid')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ roomId: row.room_id, roomNid: row.room_nid }));
}
