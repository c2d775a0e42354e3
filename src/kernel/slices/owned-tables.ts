import type { AnyWriter } from '../database/index.ts';

/** A table whose rows belong to an account. */
export interface AccountTable {
  readonly table: string;
  /** The column with the user id. */
  readonly column: string;
  /**
   * When the rows are deleted. `deactivation`: at every deactivation of the account. `erasure`: only at a deactivation
   * with `erase: true`. `logout`: at every deactivation, at the end of all sessions of the user, and when the password
   * changes.
   */
  readonly deletedOn: 'deactivation' | 'erasure' | 'logout';
}

/** The tables of one slice whose rows belong to accounts. */
export interface AccountRows {
  readonly tables: readonly AccountTable[];
}

/** A table whose rows belong to a device. */
export interface DeviceTable {
  readonly table: string;
  /** The column with the id of the user to whom the device belongs. */
  readonly userColumn: string;
  readonly deviceColumn: string;
}

/** Rows in the tables of one slice that are deleted in the transaction that deletes their devices. */
export interface DeviceRows {
  readonly tables?: readonly DeviceTable[];
  /** Deletes rows that have no columns for the user and the device. @param deviceIds at least one */
  readonly deleteForDevices?: (
    writer: AnyWriter,
    userId: string,
    deviceIds: readonly string[],
  ) => Promise<void>;
}
