import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { E2eeTables } from '../tables.ts';
import type { DeviceAddress } from './one-time-key-store.ts';
import type { OneTimeKey } from './one-time-keys.ts';

/** A fallback key, and whether it was claimed. */
export interface FallbackKey extends OneTimeKey {
  readonly used: boolean;
}

/** Replaces the fallback key of an algorithm. A used key that is uploaded again stays marked as used. */
export async function writeFallbackKey(
  writer: Writer<E2eeTables>,
  { userId, deviceId }: DeviceAddress,
  { algorithm, keyId, key, digest }: OneTimeKey,
): Promise<void> {
  const columns = { key_id: keyId, key, digest, used: 0 };
  await writer
    .insertInto('fallback_keys')
    .values({ user_id: userId, device_id: deviceId, algorithm, ...columns })
    .onConflict((conflict) =>
      conflict
        .columns(['user_id', 'device_id', 'algorithm'])
        .doUpdateSet(columns)
        .where((where) =>
          where.or([where('fallback_keys.digest', '<>', digest), where('fallback_keys.key_id', '<>', keyId)]),
        ),
    )
    .execute();
}

export async function readFallbackKey(
  reader: Reader<E2eeTables>,
  { userId, deviceId }: DeviceAddress,
  algorithm: string,
): Promise<FallbackKey | undefined> {
  const row = await reader
    .selectFrom('fallback_keys')
    .select(['key_id', 'key', 'digest', 'used'])
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where('algorithm', '=', algorithm)
    .executeTakeFirst();
  return row && { algorithm, keyId: row.key_id, key: row.key, digest: row.digest, used: row.used !== 0 };
}

/** @returns whether the key was not marked as used before */
export async function markFallbackKeyUsed(
  writer: Writer<E2eeTables>,
  { userId, deviceId }: DeviceAddress,
  { algorithm, digest }: OneTimeKey,
): Promise<boolean> {
  const result = await writer
    .updateTable('fallback_keys')
    .set({ used: 1 })
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where('algorithm', '=', algorithm)
    .where('digest', '=', digest)
    .where('used', '=', 0)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Returns the number of fallback keys of a device. */
export async function countFallbackKeys(
  reader: Reader<E2eeTables>,
  { userId, deviceId }: DeviceAddress,
): Promise<number> {
  const { count } = await reader
    .selectFrom('fallback_keys')
    .select(({ fn }) => fn.countAll<number | string>().as('count'))
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Returns the algorithms of the unclaimed fallback keys of a device. */
export async function unusedFallbackTypes(
  reader: Reader<E2eeTables>,
  { userId, deviceId }: DeviceAddress,
): Promise<string[]> {
  const rows = await reader
    .selectFrom('fallback_keys')
    .select('algorithm')
    .where('user_id', '=', userId)
    .where('device_id', '=', deviceId)
    .where('used', '=', 0)
    .orderBy('algorithm')
    .execute();
  return rows.map(({ algorithm }) => algorithm);
}
