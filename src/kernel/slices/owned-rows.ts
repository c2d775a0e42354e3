import { type AnyWriter, writerFor } from '../database/index.ts';
import type { AccountTable, DeviceRows, DeviceTable } from './owned-tables.ts';
import type { SliceManifest } from './slice-manifest.ts';

type AnyTables = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Deletes the rows of accounts and devices from the tables that slices declare in their manifests. */
export class OwnedRows {
  readonly #accountTables: readonly AccountTable[];
  readonly #deviceRows: readonly DeviceRows[];

  constructor(slices: readonly SliceManifest[]) {
    this.#accountTables = slices.flatMap(({ accountRows }) => accountRows?.tables ?? []);
    this.#deviceRows = slices.flatMap(({ deviceRows }) => deviceRows ?? []);
  }

  /** Deletes the rows of an account in the transaction that deactivates it. */
  async deactivated(
    writer: AnyWriter,
    _publish: unknown,
    { userId, erase }: { readonly userId: string; readonly erase: boolean },
  ): Promise<void> {
    const tables = writerFor<AnyTables>(writer);
    for (const { table, column, deletedOn } of this.#accountTables) {
      if (deletedOn === 'erasure' && !erase) continue;
      await tables.deleteFrom(table).where(column, '=', userId).execute();
    }
  }

  /** Deletes the rows of an account in the transaction that ends its sessions or changes its password. */
  async loggedOut(
    writer: AnyWriter,
    _publish: unknown,
    { userId }: { readonly userId: string },
  ): Promise<void> {
    const tables = writerFor<AnyTables>(writer);
    for (const { table, column, deletedOn } of this.#accountTables) {
      if (deletedOn === 'logout') await tables.deleteFrom(table).where(column, '=', userId).execute();
    }
  }

  /** Deletes the rows of devices in the transaction that deletes the devices. @param deviceIds at least one */
  async devicesRemoved(
    writer: AnyWriter,
    _publish: unknown,
    userId: string,
    deviceIds: readonly string[],
  ): Promise<void> {
    for (const { tables = [], deleteForDevices } of this.#deviceRows) {
      for (const table of tables) await deleteRows(writer, table, userId, deviceIds);
      await deleteForDevices?.(writer, userId, deviceIds);
    }
  }
}

async function deleteRows(
  writer: AnyWriter,
  { table, userColumn, deviceColumn }: DeviceTable,
  userId: string,
  deviceIds: readonly string[],
): Promise<void> {
  await writerFor<AnyTables>(writer)
    .deleteFrom(table)
    .where(userColumn, '=', userId)
    .where(deviceColumn, 'in', deviceIds)
    .execute();
}
