import { sql } from 'kysely';
import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { E2eeTables } from '../tables.ts';

/** Maximum number of users in one query. */
const chunkSize = 500;

/** Returns the stored object `device_keys` of a device; `undefined` when the device has uploaded none. */
export async function readDeviceKeys(
  reader: Reader<E2eeTables>,
  userId: string,
  deviceId: string,
): Promise<JsonObject | undefined> {
  const row = await reader
    .selectFrom('device_keys')
    .select('keys')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .executeTakeFirst();
  return row && (JSON.parse(row.keys) as JsonObject);
}

/** Returns the keys of all devices of these users, as JSON. */
export async function readDeviceKeysOf(
  reader: Reader<E2eeTables>,
  userIds: readonly string[],
): Promise<{ userId: string; deviceId: string; keys: string }[]> {
  const deviceKeys: { userId: string; deviceId: string; keys: string }[] = [];
  for (let start = 0; start < userIds.length; start += chunkSize) {
    const rows = await reader
      .selectFrom('device_keys')
      .selectAll()
      .where('user_id', 'in', userIds.slice(start, start + chunkSize))
      .execute();
    for (const row of rows) deviceKeys.push({ userId: row.user_id, deviceId: row.device_id, keys: row.keys });
  }
  return deviceKeys;
}

/** Returns the bytes of the device keys and cross-signing keys of users; users without keys are absent. */
export async function keyBytesOf(
  reader: Reader<E2eeTables>,
  userIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const bytesByUser = new Map<string, number>();
  for (let start = 0; start < userIds.length; start += chunkSize) {
    for (const table of ['device_keys', 'cross_signing_keys'] as const) {
      const rows = await reader
        .selectFrom(table)
        .select(['user_id', sql<number | string>`cast(sum(octet_length(keys)) as bigint)`.as('bytes')])
        .where('user_id', 'in', userIds.slice(start, start + chunkSize))
        .groupBy('user_id')
        .execute();
      for (const row of rows)
        bytesByUser.set(row.user_id, (bytesByUser.get(row.user_id) ?? 0) + Number(row.bytes));
    }
  }
  return bytesByUser;
}

/** Stores the object `device_keys` of a device in place of an earlier one. */
export async function writeDeviceKeys(
  writer: Writer<E2eeTables>,
  userId: string,
  deviceId: string,
  object: JsonObject,
): Promise<void> {
  const keys = JSON.stringify(object);
  await writer
    .insertInto('device_keys')
    .values({ user_id: userId, device_id: deviceId, keys })
    .onConflict((conflict) => conflict.columns(['user_id', 'device_id']).doUpdateSet({ keys }))
    .execute();
}

/**
 * Deletes the one-time keys of devices, claimed ones included, and the fallback keys. These keys are useless after a
 * change of the identity keys.
 */
export async function deleteOneTimeKeysOfDevices(
  writer: Writer<E2eeTables>,
  userId: string,
  deviceIds: readonly string[],
): Promise<void> {
  for (const table of ['one_time_keys', 'claimed_one_time_keys', 'fallback_keys'] as const) {
    await writer
      .deleteFrom(table)
      .where('user_id', '=', userId)
      .where('device_id', 'in', deviceIds)
      .execute();
  }
}
