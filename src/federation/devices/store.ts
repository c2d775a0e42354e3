import type { Reader, Writer } from '../../kernel/database/index.ts';
import type { AnnouncementTables } from './tables.ts';

/** The last update of a user's device list that was sent to other servers. */
export interface LastUpdate {
  readonly streamId: number;
  /** `streamId` of the previous update; `undefined` for the first update. */
  readonly previous: number | undefined;
  /** The device that the update was about. */
  readonly deviceId: string;
}

/** Returns the last device list update that was sent for a user. */
export async function readLastUpdate(
  reader: Reader<AnnouncementTables>,
  userId: string,
): Promise<LastUpdate | undefined> {
  const row = await reader
    .selectFrom('announced_device_lists')
    .selectAll()
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row && { streamId: row.stream_id, previous: row.previous ?? undefined, deviceId: row.device_id };
}

/** Stores the last device list update that was sent for a user. */
export async function writeLastUpdate(
  writer: Writer<AnnouncementTables>,
  userId: string,
  { streamId, previous = null, deviceId }: Omit<LastUpdate, 'previous'> & { previous?: number | null },
): Promise<void> {
  const columns = { stream_id: streamId, previous, device_id: deviceId };
  await writer
    .insertInto('announced_device_lists')
    .values({ user_id: userId, ...columns })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(columns))
    .execute();
}
