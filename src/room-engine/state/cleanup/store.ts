import type { Database, Writer } from '../../../kernel/database/index.ts';
import type { RoomTables } from '../../tables.ts';
import type { GroupLink } from './plan.ts';

/** Number of rows that one query reads. */
const rowsAtOnce = 5_000;

/** Returns the id of the newest stored group of a room; 0 where there is none. */
export async function newestGroup(database: Database, roomNid: number): Promise<number> {
  const row = await database
    .scanner<RoomTables>()
    .selectFrom('state_groups')
    .select(({ fn }) => fn.max('id').as('id'))
    .where('room_nid', '=', roomNid)
    .executeTakeFirst();
  return row?.id ?? 0;
}

/** Reads all groups of a room, in the order of their ids. */
export async function readGroups(database: Database, roomNid: number): Promise<GroupLink[]> {
  const groups: GroupLink[] = [];
  for (let after = 0; ; ) {
    const rows = await database
      .scanner<RoomTables>()
      .selectFrom('state_groups')
      .leftJoin('state_group_edges', 'state_group_edges.id', 'state_groups.id')
      .select(['state_groups.id', 'state_group_edges.prev_id'])
      .where('state_groups.room_nid', '=', roomNid)
      .where('state_groups.id', '>', after)
      .orderBy('state_groups.id')
      .limit(rowsAtOnce)
      .execute();
    for (const row of rows) groups.push({ id: row.id, prevId: row.prev_id ?? undefined });
    after = rows.at(-1)?.id ?? after;
    if (rows.length < rowsAtOnce) return groups;
  }
}

/** Reads the ids of the groups that the events of a room and the room itself refer to. */
export async function readUsedGroups(database: Database, roomNid: number): Promise<Set<number>> {
  const used = new Set<number>();
  const first = await lowestPosition(database, roomNid);
  const events = () => database.scanner<RoomTables>().selectFrom('events').where('room_nid', '=', roomNid);
  const add = (...groups: (number | null)[]) => {
    for (const group of groups) if (group !== null) used.add(group);
  };
  for (let after: number | undefined; ; ) {
    let query = events()
      .select(['stream', 'state_group', 'state_before'])
      .where('stream', 'is not', null)
      .orderBy('stream')
      .limit(rowsAtOnce);
    if (after !== undefined) query = query.where('stream', '>', after);
    const rows = await query.execute();
    for (const row of rows) add(row.state_group, row.state_before);
    after = rows.at(-1)?.stream ?? undefined;
    if (rows.length < rowsAtOnce) break;
  }
  // Backfilled events are assigned positions below all other events, so events that were backfilled during the query
  // are before `first`.
  for (let before = first; before !== undefined; ) {
    const rows = await events()
      .select(['stream', 'state_group', 'state_before'])
      .where('stream', '<', before)
      .orderBy('stream', 'desc')
      .limit(rowsAtOnce)
      .execute();
    for (const row of rows) add(row.state_group, row.state_before);
    before = rows.at(-1)?.stream ?? undefined;
  }
  for (let after = 0; ; ) {
    const rows = await events()
      .select(['nid', 'state_group', 'state_before'])
      .where('stream', 'is', null)
      .where('state_group', 'is not', null)
      .where('nid', '>', after)
      .orderBy('nid')
      .limit(rowsAtOnce)
      .execute();
    for (const row of rows) add(row.state_group, row.state_before);
    after = rows.at(-1)?.nid ?? after;
    if (rows.length < rowsAtOnce) break;
  }
  const room = await database
    .scanner<RoomTables>()
    .selectFrom('rooms')
    .select('state_group')
    .where('room_nid', '=', roomNid)
    .executeTakeFirst();
  add(room?.state_group ?? null);
  return used;
}

/** Returns the lowest position of a timeline event of a room; `undefined` where it has none. */
async function lowestPosition(database: Database, roomNid: number): Promise<number | undefined> {
  const row = await database
    .scanner<RoomTables>()
    .selectFrom('events')
    .select('stream')
    .where('room_nid', '=', roomNid)
    .where('stream', 'is not', null)
    .orderBy('stream')
    .limit(1)
    .executeTakeFirst();
  return row?.stream ?? undefined;
}

/** An entry of a delta. */
export interface DeltaEntry {
  readonly key_nid: number;
  readonly event_nid: number;
}

/** Reads the delta of a group. */
export function readDelta(database: Database, group: number): Promise<DeltaEntry[]> {
  return database
    .scanner<RoomTables>()
    .selectFrom('state_groups_state')
    .select(['key_nid', 'event_nid'])
    .where('group_id', '=', group)
    .execute();
}

/** Returns the number of entries in the delta of each group, in the order of the groups. */
export async function deltaSizes(
  database: Database,
  groups: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const rows = await database
    .scanner<RoomTables>()
    .selectFrom('state_groups_state')
    .select(({ fn }) => ['group_id', fn.countAll<number>().as('count')])
    .where('group_id', 'in', groups)
    .groupBy('group_id')
    .execute();
  const counts = new Map(rows.map(({ group_id, count }) => [group_id, Number(count)]));
  return new Map(groups.map((id) => [id, counts.get(id) ?? 0]));
}

/** Deletes up to `limit` entries of an unused group, unless a group with an id above `after` is built on it. */
export async function deleteEntries(
  writer: Writer<RoomTables>,
  group: number,
  after: number,
  limit: number,
): Promise<void> {
  if ((await builtOn(writer, [group], after)).size > 0) return;
  const keys = writer
    .selectFrom('state_groups_state')
    .select('key_nid')
    .where('group_id', '=', group)
    .orderBy('key_nid')
    .limit(limit);
  await writer
    .deleteFrom('state_groups_state')
    .where('group_id', '=', group)
    .where('key_nid', 'in', keys)
    .execute();
}

/** Adds entries to the delta of a group, except entries whose key the delta already has. */
export async function addToDelta(
  writer: Writer<RoomTables>,
  group: number,
  entries: readonly DeltaEntry[],
): Promise<void> {
  await writer
    .insertInto('state_groups_state')
    .values(entries.map((entry) => ({ group_id: group, ...entry })))
    .onConflict((conflict) => conflict.columns(['group_id', 'key_nid']).doNothing())
    .execute();
}

/** Changes the predecessor of a group. `undefined` makes the group the root of a chain, whose ordinal is 0. */
export async function setPredecessor(
  writer: Writer<RoomTables>,
  group: number,
  prevId: number | undefined,
): Promise<void> {
  if (prevId !== undefined) {
    await writer.updateTable('state_group_edges').set({ prev_id: prevId }).where('id', '=', group).execute();
    return;
  }
  await writer.deleteFrom('state_group_edges').where('id', '=', group).execute();
  await writer.updateTable('state_groups').set({ ordinal: 0 }).where('id', '=', group).execute();
}

/**
 * Deletes groups, except groups on which a group with an id above `after` is built.
 * @param after id of the newest group when `groups` were found unused: only newer groups may be built on one
 * of `groups`
 * @returns how many were deleted
 */
export async function deleteUnused(
  writer: Writer<RoomTables>,
  groups: readonly number[],
  after: number,
): Promise<number> {
  const stillBuiltOn = await builtOn(writer, groups, after);
  const ids = groups.filter((id) => !stillBuiltOn.has(id));
  if (ids.length === 0) return 0;
  await writer.deleteFrom('state_groups_state').where('group_id', 'in', ids).execute();
  await writer.deleteFrom('state_group_edges').where('id', 'in', ids).execute();
  await writer.deleteFrom('state_groups').where('id', 'in', ids).execute();
  return ids.length;
}

/** Returns the groups among `groups` that a group with an id above `after` is built on. */
async function builtOn(
  writer: Writer<RoomTables>,
  groups: readonly number[],
  after: number,
): Promise<Set<number>> {
  const rows = await writer
    .selectFrom('state_group_edges')
    .select('prev_id')
    .where('id', '>', after)
    .where('prev_id', 'in', groups)
    .execute();
  return new Set(rows.map(({ prev_id }) => prev_id));
}
