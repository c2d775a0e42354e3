import type { Migration } from '../database/index.ts';
import type { AccountRows, DeviceRows } from './owned-tables.ts';
import type { RoomRows } from './room-rows.ts';

/**
 * The static half of a slice: its tables, and which of their rows are deleted with a room, an account or a device.
 * Each slice with tables exports one from its `manifest.ts`; `src/composition/slices.ts` lists them.
 */
export interface SliceManifest {
  /** The folder of the slice. */
  readonly name: string;
  /** Applied in this order, after those of the slices that are listed before this one. */
  readonly migrations: readonly Migration[];
  readonly roomRows?: RoomRows;
  readonly accountRows?: AccountRows;
  readonly deviceRows?: DeviceRows;
}

/** Returns the schema migrations of all slices, in the order in which they are applied. */
export const migrationsOf = (slices: readonly SliceManifest[]): Migration[] =>
  slices.flatMap(({ migrations }) => migrations);
