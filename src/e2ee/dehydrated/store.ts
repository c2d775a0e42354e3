import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { E2eeTables } from '../tables.ts';

/** A dehydrated device of a user. */
export interface DehydratedDevice {
  readonly deviceId: string;
  /** The device's secrets, encrypted by the client. */
  readonly data: JsonObject;
}

export async function readDehydrated(
  reader: Reader<E2eeTables>,
  userId: string,
): Promise<DehydratedDevice | undefined> {
  const row = await reader
    .selectFrom('dehydrated_devices')
    .select(['device_id', 'device_data'])
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row && { deviceId: row.device_id, data: JSON.parse(row.device_data) as JsonObject };
}

export async function insertDehydrated(
  writer: Writer<E2eeTables>,
  userId: string,
  { deviceId, data }: DehydratedDevice,
): Promise<void> {
  await writer
    .insertInto('dehydrated_devices')
    .values({ user_id: userId, device_id: deviceId, device_data: JSON.stringify(data) })
    .execute();
}
