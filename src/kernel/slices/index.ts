/**
 * The declarations that each slice (the folder of one feature) makes about its options and data. Other code reads these
 * declarations and does not list the slices itself.
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
