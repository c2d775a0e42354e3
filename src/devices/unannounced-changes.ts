import type { Reader, Writer } from '../kernel/database/index.ts';
import type { DeviceTables } from './tables.ts';

/** A change of a local user's device list that is pending for other servers. */
export interface UnannouncedChange {
  readonly userId: string;
  /** A device id, or `crossSigningKeys`. */
  readonly deviceId: string;
  /** Position of the last change. */
  readonly position: number;
}

/** Stands for a user's cross-signing keys in place of a device id; no device has this id. */
export const crossSigningKeys = '';

/** Maximum rows of one statement. */
const rowsPerStatement = 2_000;

/** Adds changes. A pending change of the same device takes the new position. */
export async function addUnannounced(
  writer: Writer<DeviceTables>,
  changes: readonly UnannouncedChange[],
): Promise<void> {
  for (let start = 0; start < changes.length; start += rowsPerStatement) {
    const rows = changes.slice(start, start + rowsPerStatement).map(({ userId, deviceId, position }) => ({
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

/** The oldest pending changes. */
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

/** Deletes these changes, but keeps the change of a device that has changed again at a later position. */
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
