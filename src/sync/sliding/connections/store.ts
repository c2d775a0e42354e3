import type { Reader, Writer } from '../../../kernel/database/index.ts';
import type { ConnectionAddress, OutdatedRows, SentChanges } from './connection.ts';
import { nothingSent, type SentPart, type SentRoom } from './sent-room.ts';
import type { SlidingSyncTables } from './tables.ts';

/** Maximum number of rows or rooms in one statement. */
const chunkSize = 500;

/** A stored connection. */
export interface StoredConnection {
  readonly id: number;
  /** The oldest generation that a request may continue from. */
  readonly floor: number;
  /** The `required_state` parameters, as texts; rooms refer to them by index. */
  readonly states: readonly string[];
}

/** Returns a stored connection of sliding sync, without its rooms. */
export async function readConnection(
  reader: Reader<SlidingSyncTables>,
  { userId, deviceId, name }: ConnectionAddress,
): Promise<StoredConnection | undefined> {
  const row = await reader
    .selectFrom('sliding_sync_connections')
    .select(['id', 'floor', 'states'])
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where('conn_id', '=', name)
    .executeTakeFirst();
  return row && { ...row, states: JSON.parse(row.states) as string[] };
}

/**
 * Returns the sent state of a connection at a generation.
 * @returns `rooms`: the sent state by room nid; `unreceived`: nids of rooms with rows of later generations; `newest`:
 * the latest stored generation, at least `generation`
 */
export async function readRooms(
  reader: Reader<SlidingSyncTables>,
  { id, states }: StoredConnection,
  generation: number,
): Promise<{ rooms: Map<number, SentRoom>; unreceived: Set<number>; newest: number }> {
  const rows = await reader
    .selectFrom('sliding_sync_rooms')
    .selectAll()
    .where('connection', '=', id)
    .orderBy('generation')
    .execute();
  const rooms = new Map<number, SentRoom>();
  const unreceived = new Set<number>();
  let newest = generation;
  for (const row of rows) {
    newest = Math.max(newest, row.generation);
    if (row.generation > generation) unreceived.add(row.room_nid);
    else if (isNothing(row)) rooms.delete(row.room_nid);
    else rooms.set(row.room_nid, sentRoom(row, states));
  }
  return { rooms, unreceived, newest };
}

/**
 * Writes the changes that an answer makes to the sent state, and deletes outdated rows.
 * @returns `false` when the connection is not stored, because it was replaced, or deleted with its device
 */
export async function writeGeneration(
  writer: Writer<SlidingSyncTables>,
  connection: StoredConnection & { readonly hasNewStates: boolean },
  { generation, changes, outdated, now }: Generation,
): Promise<boolean> {
  const { id, floor, states, hasNewStates } = connection;
  const values = { floor, used_ts: now, ...(hasNewStates && { states: JSON.stringify(states) }) };
  const { numUpdatedRows } = await writer
    .updateTable('sliding_sync_connections')
    .set(values)
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows === 0n) return false;
  for (const { below, roomNids } of outdated) {
    for (const nids of chunks(roomNids)) {
      await writer
        .deleteFrom('sliding_sync_rooms')
        .where('connection', '=', id)
        .where('room_nid', 'in', nids)
        .where('generation', '<', below)
        .execute();
    }
  }
  const indexes = new Map(states.map((text, index) => [text, index]));
  const rows = [...changes].map(([roomNid, sent]) => ({
    connection: id,
    room_nid: roomNid,
    generation,
    ...columnsOf(sent ?? nothingSent, indexes),
  }));
  for (const chunk of chunks(rows)) {
    await writer
      .insertInto('sliding_sync_rooms')
      .values(chunk)
      .onConflict((conflict) =>
        conflict.columns(['connection', 'room_nid', 'generation']).doUpdateSet((update) => ({
          timeline: update.ref('excluded.timeline'),
          receipts: update.ref('excluded.receipts'),
          account_data: update.ref('excluded.account_data'),
          timeline_limit: update.ref('excluded.timeline_limit'),
          state: update.ref('excluded.state'),
        })),
      )
      .execute();
  }
  return true;
}

/** The changes that one answer makes to the rows of a connection. `now` is in milliseconds since the epoch. */
export interface Generation {
  readonly generation: number;
  readonly changes: SentChanges;
  readonly outdated: readonly OutdatedRows[];
  readonly now: number;
}

/**
 * Stores a new connection, which replaces the stored connection of the same name. Deletes the least recently used of
 * the connections with other names when there are too many.
 * @param bounds `maxOtherOfDevice`, `maxOtherOfUser`: how many connections with other names may remain, of the device
 * and of all devices of the user; `now`: milliseconds since the epoch
 * @returns the addresses of the deleted connections with other names
 */
export async function replaceConnection(
  writer: Writer<SlidingSyncTables>,
  id: number,
  { userId, deviceId, name }: ConnectionAddress,
  {
    maxOtherOfDevice,
    maxOtherOfUser,
    now,
  }: { maxOtherOfDevice: number; maxOtherOfUser: number; now: number },
): Promise<ConnectionAddress[]> {
  const stored = await writer
    .selectFrom('sliding_sync_connections')
    .select(['id', 'device_id', 'conn_id'])
    .where('user_id', '=', userId)
    .orderBy('used_ts', 'desc')
    .execute();
  const isReplaced = (row: (typeof stored)[number]) => row.device_id === deviceId && row.conn_id === name;
  const otherRows = stored.filter((row) => !isReplaced(row));
  const surplus = new Set(
    otherRows.filter(({ device_id }) => device_id === deviceId).slice(maxOtherOfDevice),
  );
  const remaining = otherRows.filter((row) => !surplus.has(row));
  const deleted = [...surplus, ...remaining.slice(maxOtherOfUser)];
  await deleteConnections(
    writer,
    [...stored.filter(isReplaced), ...deleted].map((connection) => connection.id),
  );
  const address = { user_id: userId, device_id: deviceId, conn_id: name };
  const columns = { id, floor: 0, states: '[]', used_ts: now };
  await writer
    .insertInto('sliding_sync_connections')
    .values({ ...address, ...columns })
    .onConflict((conflict) => conflict.columns(['user_id', 'device_id', 'conn_id']).doUpdateSet(columns))
    .execute();
  return deleted.map(({ device_id, conn_id }) => ({ userId, deviceId: device_id, name: conn_id }));
}

/** Deletes the connections of devices. */
export async function deleteOfDevices(
  writer: Writer<SlidingSyncTables>,
  userId: string,
  deviceIds: readonly string[],
): Promise<void> {
  for (const chunk of chunks(deviceIds)) {
    const rows = await writer
      .selectFrom('sliding_sync_connections')
      .select('id')
      .where('user_id', '=', userId)
      .where('device_id', 'in', chunk)
      .execute();
    await deleteConnections(
      writer,
      rows.map(({ id }) => id),
    );
  }
}

async function deleteConnections(writer: Writer<SlidingSyncTables>, ids: readonly number[]): Promise<void> {
  for (const chunk of chunks(ids)) {
    await writer.deleteFrom('sliding_sync_rooms').where('connection', 'in', chunk).execute();
    await writer.deleteFrom('sliding_sync_connections').where('id', 'in', chunk).execute();
  }
}

type RoomRow = SlidingSyncTables['sliding_sync_rooms'];

/** The number that stands for `never` in the database. */
const never = -2;

/** The number that stands for `live` in the database. */
const live = -1;

const numberOf = (part: SentPart) => (part === 'never' ? never : part === 'live' ? live : part);

const partOf = (number: number): SentPart => (number === never ? 'never' : number === live ? 'live' : number);

const isNothing = (row: RoomRow) =>
  row.timeline === never && row.receipts === never && row.account_data === never;

function columnsOf(
  { timeline, receipts, account_data, timelineLimit, requiredState }: SentRoom,
  states: ReadonlyMap<string, number>,
) {
  return {
    timeline: numberOf(timeline),
    receipts: numberOf(receipts),
    account_data: numberOf(account_data),
    timeline_limit: timelineLimit,
    state: states.get(requiredState) ?? 0,
  };
}

function sentRoom(row: RoomRow, states: readonly string[]): SentRoom {
  return {
    timeline: partOf(row.timeline),
    receipts: partOf(row.receipts),
    account_data: partOf(row.account_data),
    timelineLimit: row.timeline_limit,
    requiredState: states[row.state] ?? nothingSent.requiredState,
  };
}

function* chunks<T>(items: readonly T[]): Generator<T[]> {
  for (let start = 0; start < items.length; start += chunkSize) yield items.slice(start, start + chunkSize);
}
