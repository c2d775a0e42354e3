import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { E2eeTables } from '../tables.ts';
import type { OneTimeKey } from './one-time-keys.ts';

/** Identifies a device. */
export interface DeviceAddress {
  readonly userId: string;
  readonly deviceId: string;
}

/** A stored one-time key. */
export interface StoredOneTimeKey extends OneTimeKey, DeviceAddress {
  /** Increases in the order of uploads. */
  readonly id: number;
}

/** Maximum number of keys in one statement. */
const chunkSize = 1_000;

/**
 * Returns the digests of the unclaimed and the recently claimed keys of a device that have one of the given key ids, by
 * name (`<algorithm>:<key id>`).
 */
export async function readDigests(
  reader: Reader<E2eeTables>,
  { userId, deviceId }: DeviceAddress,
  keyIds: readonly string[],
): Promise<{ available: Map<string, string>; claimed: Map<string, string> }> {
  const read = async (table: 'one_time_keys' | 'claimed_one_time_keys') => {
    const rows = await reader
      .selectFrom(table)
      .select(['algorithm', 'key_id', 'digest'])
      .where('user_id', '=', userId)
      .where('device_id', '=', deviceId)
      .where('key_id', 'in', keyIds)
      .execute();
    return new Map(rows.map((row) => [`${row.algorithm}:${row.key_id}`, row.digest]));
  };
  return { available: await read('one_time_keys'), claimed: await read('claimed_one_time_keys') };
}

/** Inserts unclaimed one-time keys. */
export async function insertOneTimeKeys(
  writer: Writer<E2eeTables>,
  keys: readonly StoredOneTimeKey[],
): Promise<void> {
  for (let start = 0; start < keys.length; start += chunkSize) {
    const rows = keys
      .slice(start, start + chunkSize)
      .map(({ id, userId, deviceId, algorithm, keyId, key, digest }) => ({
        id,
        user_id: userId,
        device_id: deviceId,
        algorithm,
        key_id: keyId,
        key,
        digest,
      }));
    // When the same upload runs twice in parallel, one transaction conflicts with the other and is retried.
    await writer
      .insertInto('one_time_keys')
      .values(rows)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/** Returns the ids of the oldest unclaimed keys of a device and algorithm. */
export async function oldestKeyIds(
  reader: Reader<E2eeTables>,
  { userId, deviceId }: DeviceAddress,
  algorithm: string,
  limit: number,
): Promise<number[]> {
  const rows = await reader
    .selectFrom('one_time_keys')
    .select('id')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where('algorithm', '=', algorithm)
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/**
 * Returns those devices of the users that have one-time keys or a fallback key, once for each algorithm of the keys.
 */
export async function readDevicesWithKeys(
  reader: Reader<E2eeTables>,
  userIds: readonly string[],
): Promise<(DeviceAddress & { readonly algorithm: string })[]> {
  const rows = await reader
    .selectFrom('one_time_keys')
    .select(['user_id', 'device_id', 'algorithm'])
    .distinct()
    .where('user_id', 'in', userIds)
    .union(
      reader
        .selectFrom('fallback_keys')
        .select(['user_id', 'device_id', 'algorithm'])
        .where('user_id', 'in', userIds),
    )
    .execute();
  return rows.map((row) => ({ userId: row.user_id, deviceId: row.device_id, algorithm: row.algorithm }));
}

/**
 * Moves unclaimed keys to the table of claimed keys.
 * @returns the keys that were not claimed before, oldest first
 */
export async function claimKeys(
  writer: Writer<E2eeTables>,
  ids: readonly number[],
): Promise<StoredOneTimeKey[]> {
  const claimedKeys: StoredOneTimeKey[] = [];
  for (let start = 0; start < ids.length; start += chunkSize) {
    const rows = await writer
      .deleteFrom('one_time_keys')
      .where('id', 'in', ids.slice(start, start + chunkSize))
      .returningAll()
      .execute();
    if (rows.length === 0) continue;
    await writer
      .insertInto('claimed_one_time_keys')
      .values(rows.map(({ key: _key, ...claimed }) => claimed))
      .execute();
    claimedKeys.push(
      ...rows.map(({ user_id, device_id, key_id, ...row }) => ({
        ...row,
        userId: user_id,
        deviceId: device_id,
        keyId: key_id,
      })),
    );
  }
  return claimedKeys.sort((a, b) => a.id - b.id);
}

/** Deletes the oldest claimed keys of a device beyond a limit. */
export async function deleteOldClaimedKeys(
  writer: Writer<E2eeTables>,
  { userId, deviceId }: DeviceAddress,
  limit: number,
): Promise<void> {
  const newestExcessKey = await writer
    .selectFrom('claimed_one_time_keys')
    .select('id')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .orderBy('id', 'desc')
    .limit(1)
    .offset(limit)
    .executeTakeFirst();
  if (!newestExcessKey) return;
  await writer
    .deleteFrom('claimed_one_time_keys')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where('id', '<=', newestExcessKey.id)
    .execute();
}

/** Returns the number of unclaimed keys of a device by algorithm. */
export async function countKeys(
  reader: Reader<E2eeTables>,
  { userId, deviceId }: DeviceAddress,
): Promise<Record<string, number>> {
  const rows = await reader
    .selectFrom('one_time_keys')
    .select(({ fn }) => ['algorithm', fn.countAll().as('count')])
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .groupBy('algorithm')
    .execute();
  return Object.fromEntries(rows.map(({ algorithm, count }) => [algorithm, Number(count)]));
}
