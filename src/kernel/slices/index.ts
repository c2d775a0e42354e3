/**
 * The declarations of each slice about its options and data, so that no other code lists the slices one by
 * one.
 */
export { OwnedRows } from './owned-rows.ts';
export type { AccountRows, AccountTable, DeviceRows, DeviceTable } from './owned-tables.ts';
export type { PurgedRoom, RoomRows, RoomTable } from './room-rows.ts';
export {
  type AfterRestore,
  migrationsOf,
  type OptionsOf,
  optionsOf,
  type SliceManifest,
} from './slice-manifest.ts';
