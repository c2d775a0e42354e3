import { sql } from 'kysely';
import type { Reader, Writer } from '../../kernel/database/index.ts';
import { type JsonObject, serverOfUser } from '../../protocol/index.ts';
import type { E2eeTables } from '../tables.ts';
import type { RemoteList, RemoteListWithDevices, RemoteSnapshot } from './remote-list.ts';

type Row = E2eeTables['remote_device_lists'];

/** Maximum number of users in one query. */
const chunkSize = 500;

/** Maximum number of rows that one statement writes. */
const rowsPerStatement = 2_000;

const parsed = (text: string | null) => (text === null ? undefined : (JSON.parse(text) as JsonObject));
const textOf = (object: JsonObject | undefined) => (object === undefined ? null : JSON.stringify(object));

function toList(row: Row): RemoteList {
  return {
    userId: row.user_id,
    server: row.server,
    streamIds: JSON.parse(row.stream_ids) as number[],
    stale: row.stale !== 0,
    revision: row.revision,
    masterKey: parsed(row.master_key),
    selfSigningKey: parsed(row.self_signing_key),
  };
}

export async function readList(reader: Reader<E2eeTables>, userId: string): Promise<RemoteList | undefined> {
  const row = await reader
    .selectFrom('remote_device_lists')
    .selectAll()
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row && toList(row);
}

/** Returns the bytes of the keys in the stored lists of users; users without a stored list are absent. */
export async function listBytesOf(
  reader: Reader<E2eeTables>,
  userIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const bytesByUser = new Map<string, number>();
  const add = (rows: readonly { readonly user_id: string; readonly bytes: number | string }[]) => {
    for (const row of rows)
      bytesByUser.set(row.user_id, (bytesByUser.get(row.user_id) ?? 0) + Number(row.bytes));
  };
  const crossSigningBytes = sql<number>`coalesce(octet_length(master_key), 0)
    + coalesce(octet_length(self_signing_key), 0)`;
  const deviceBytes = sql<number | string>`cast(sum(octet_length(keys)) as bigint)`;
  for (let start = 0; start < userIds.length; start += chunkSize) {
    const batch = userIds.slice(start, start + chunkSize);
    add(
      await reader
        .selectFrom('remote_device_lists')
        .select(['user_id', crossSigningBytes.as('bytes')])
        .where('user_id', 'in', batch)
        .execute(),
    );
    add(
      await reader
        .selectFrom('remote_devices')
        .select(['user_id', deviceBytes.as('bytes')])
        .where('user_id', 'in', batch)
        .groupBy('user_id')
        .execute(),
    );
  }
  return bytesByUser;
}

/** Returns the stored lists of users with their devices; users without a stored list are absent. */
export async function readLists(
  reader: Reader<E2eeTables>,
  userIds: readonly string[],
): Promise<RemoteListWithDevices[]> {
  const result: RemoteListWithDevices[] = [];
  for (let start = 0; start < userIds.length; start += chunkSize) {
    const batch = userIds.slice(start, start + chunkSize);
    const lists = await reader
      .selectFrom('remote_device_lists')
      .selectAll()
      .where('user_id', 'in', batch)
      .execute();
    if (lists.length === 0) continue;
    const devices = await reader
      .selectFrom('remote_devices')
      .selectAll()
      .where('user_id', 'in', batch)
      .execute();
    const byUser = Map.groupBy(devices, ({ user_id }) => user_id);
    for (const row of lists) {
      const entries = (byUser.get(row.user_id) ?? []).map(
        ({ device_id, keys }) => [device_id, JSON.parse(keys) as JsonObject] as const,
      );
      result.push({ ...toList(row), devices: new Map(entries) });
    }
  }
  return result;
}

/**
 * Marks lists as stale, and inserts lists that do not exist.
 * @param now milliseconds since the epoch: the first revision of an inserted list, so that it differs from
 * the revisions of an earlier list of the user
 */
export async function markStale(
  writer: Writer<E2eeTables>,
  userIds: readonly string[],
  now: number,
): Promise<void> {
  for (let start = 0; start < userIds.length; start += rowsPerStatement) {
    const rows = userIds.slice(start, start + rowsPerStatement).map((userId) => ({
      user_id: userId,
      server: serverOfUser(userId),
      stream_ids: '[]',
      stale: 1,
      revision: now,
      master_key: null,
      self_signing_key: null,
    }));
    await writer
      .insertInto('remote_device_lists')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .column('user_id')
          .doUpdateSet((eb) => ({ stale: 1, revision: eb('remote_device_lists.revision', '+', 1) })),
      )
      .execute();
  }
}

/** Stores the stream ids of the last updates that were applied to a remote user's device list. */
export async function writeStreamIds(
  writer: Writer<E2eeTables>,
  userId: string,
  streamIds: readonly number[],
): Promise<void> {
  await writer
    .updateTable('remote_device_lists')
    .set({ stream_ids: JSON.stringify(streamIds) })
    .where('user_id', '=', userId)
    .execute();
}

export async function writeSigningKeys(
  writer: Writer<E2eeTables>,
  userId: string,
  keys: Pick<RemoteList, 'masterKey' | 'selfSigningKey'>,
): Promise<void> {
  await writer
    .updateTable('remote_device_lists')
    .set({ master_key: textOf(keys.masterKey), self_signing_key: textOf(keys.selfSigningKey) })
    .where('user_id', '=', userId)
    .execute();
}

/**
 * Replaces the content of a stored list.
 * @param stale whether the list became stale again after the request for the snapshot
 */
export async function replaceList(
  writer: Writer<E2eeTables>,
  userId: string,
  { streamIds, masterKey, selfSigningKey, devices }: RemoteSnapshot,
  stale: boolean,
): Promise<void> {
  await writeStreamIds(writer, userId, streamIds);
  await writeSigningKeys(writer, userId, { masterKey, selfSigningKey });
  await writer
    .updateTable('remote_device_lists')
    .set({ stale: stale ? 1 : 0 })
    .where('user_id', '=', userId)
    .execute();
  await writer.deleteFrom('remote_devices').where('user_id', '=', userId).execute();
  const rows = [...devices].map(([deviceId, keys]) => ({
    user_id: userId,
    device_id: deviceId,
    keys: JSON.stringify(keys),
  }));
  for (let start = 0; start < rows.length; start += rowsPerStatement) {
    await writer
      .insertInto('remote_devices')
      .values(rows.slice(start, start + rowsPerStatement))
      .execute();
  }
}

/** Returns the keys of a remote user's device, as JSON. */
export async function readDevice(
  reader: Reader<E2eeTables>,
  userId: string,
  deviceId: string,
): Promise<string | undefined> {
  const row = await reader
    .selectFrom('remote_devices')
    .select('keys')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .executeTakeFirst();
  return row?.keys;
}

export async function countDevices(reader: Reader<E2eeTables>, userId: string): Promise<number> {
  const row = await reader
    .selectFrom('remote_devices')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

export async function writeDevice(
  writer: Writer<E2eeTables>,
  userId: string,
  deviceId: string,
  keys: string,
): Promise<void> {
  await writer
    .insertInto('remote_devices')
    .values({ user_id: userId, device_id: deviceId, keys })
    .onConflict((conflict) => conflict.columns(['user_id', 'device_id']).doUpdateSet({ keys }))
    .execute();
}

export async function deleteDevice(
  writer: Writer<E2eeTables>,
  userId: string,
  deviceId: string,
): Promise<void> {
  await writer
    .deleteFrom('remote_devices')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .execute();
}

export async function deleteList(writer: Writer<E2eeTables>, userId: string): Promise<void> {
  for (const table of ['remote_devices', 'remote_device_lists'] as const) {
    await writer.deleteFrom(table).where('user_id', '=', userId).execute();
  }
}

/** Returns those of the given users whose list is stored. */
export async function usersWithList(
  reader: Reader<E2eeTables>,
  userIds: readonly string[],
): Promise<Set<string>> {
  const userIdsWithList = new Set<string>();
  for (let start = 0; start < userIds.length; start += chunkSize) {
    const rows = await reader
      .selectFrom('remote_device_lists')
      .select('user_id')
      .where('user_id', 'in', userIds.slice(start, start + chunkSize))
      .execute();
    for (const row of rows) userIdsWithList.add(row.user_id);
  }
  return userIdsWithList;
}

/**
 * Returns users that have a list, in the order of ids.
 * @param after the last user of the previous page
 */
export async function listedUsers(
  reader: Reader<E2eeTables>,
  after: string,
  limit: number,
): Promise<string[]> {
  const rows = await reader
    .selectFrom('remote_device_lists')
    .select('user_id')
    .where('user_id', '>', after)
    .orderBy('user_id')
    .limit(limit)
    .execute();
  return rows.map((row) => row.user_id);
}

/**
 * Returns users of a server whose lists are stale, in the order of ids.
 * @param after the last user of the previous page
 */
export async function staleUsers(
  reader: Reader<E2eeTables>,
  server: string,
  after: string,
  limit: number,
): Promise<string[]> {
  const rows = await reader
    .selectFrom('remote_device_lists')
    .select('user_id')
    .where('server', '=', server)
    .where('stale', '=', 1)
    .where('user_id', '>', after)
    .orderBy('user_id')
    .limit(limit)
    .execute();
  return rows.map((row) => row.user_id);
}
