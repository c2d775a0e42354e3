/** Devices of local users: their names, their last activity, and changes of device lists. */

export { countActiveUsers, countDevices } from './count-devices.ts';
export {
  type ChangedDevices,
  type DeviceCleanup,
  type DeviceIdCheck,
  type DeviceListChange,
  type DeviceRequest,
  Devices,
  type DevicesDeps,
} from './devices.ts';
export { type ActivityListener, type DeviceActivity, LastSeen } from './last-seen.ts';
export { deviceMigrations } from './migrations.ts';
export type { Confirmation, Reauthentication } from './reauthentication.ts';
export { deviceRoutes } from './routes.ts';
export type { Connection, Device, DeviceNames } from './store.ts';
export { storeNoActivity } from './store-no-activity.ts';
export type { DeviceTables } from './tables.ts';
export { crossSigningKeys, type UnannouncedChange } from './unannounced-changes.ts';
export { connectionsByDevice } from './whois.ts';
