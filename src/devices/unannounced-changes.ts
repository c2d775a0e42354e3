import type { Reader, Writer } from '../kernel/database/index.ts';
import type { DeviceTables } from './tables.ts';

/** A change of a local user's list that other servers have not been told of. */
export interface UnannouncedChange {
  readonly userId: string;
  /** A device, or `crossSigningKeys`. */
  readonly deviceId: string;
  /** Of the last change. */
  readonly position: number;
}

/** Stands for the cross-signing keys of a user among the ids of their devices: no device has this id. */
export const crossSigningKeys = '';

/** Rows to a statement. */
const rowsAtOnce = 2_000;

/** A change that waits already takes the new position. */
export async function addUnannounced(
  writer: Writer<DeviceTables>,
  changes: readonly UnannouncedChange[],
): Promise<void> {
  for (let start = 0; start < changes.length; start += rowsAtOnce) {
    const rows = changes.slice(start, start + rowsAtOnce).map(({ userId, deviceId, position }) => ({
      user_id: userId,
      device_id: deviceId,
      position,
    }));
    await writer
      .insertInto('unannounced_devices')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['user_id', 'device_id'])
          .doUpdateSet((eb) => ({ position: eb.ref('excluded.position') })),
      )
      .execute();
  }
}

/** The oldest changes. */
export async function readUnannounced(
  reader: Reader<DeviceTables>,
  limit: number,
): Promise<UnannouncedChange[]> {
  const rows = await reader
    .selectFrom('unannounced_devices')
    .selectAll()
    .orderBy('position')
    .orderBy('device_id')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ userId: row.user_id, deviceId: row.device_id, position: row.position }));
}

/** Deletes changes unless there were newer ones of the same devices. */
export async function deleteUnannounced(
  writer: Writer<DeviceTables>,
  changes: readonly UnannouncedChange[],
): Promise<void> {
  for (const { userId, deviceId, position } of changes) {
    await writer
      .deleteFrom('unannounced_devices')
      .where('user_id', '=', userId)
      .where('device_id', '=', deviceId)
      .where('position', '<=', position)
      .execute();
  }
}
