/**
 * End-to-end encryption as far as a server takes part in it: device keys, one-time keys, cross-signing, key
 * backups, and notifications about changed device lists.
 */

export { DeviceKeyChanges } from './device-key-changes.ts';
export type { DeviceListChanges, DeviceLists, SignatureChange } from './device-lists/device-lists.ts';
export { refuseIdsOfKeys } from './keys/device-id-check.ts';
export type { DeviceKeyCounts, KeyCounts } from './keys/key-counts.ts';
export type { DeviceAddress } from './keys/one-time-key-store.ts';
export { e2eeManifest } from './manifest.ts';
export { e2eeMigrations } from './migrations.ts';
export { type E2ee, type E2eeDeps, openE2ee, openE2eeReading } from './open.ts';
export type { RemoteKeys } from './remote-keys/remote-keys.ts';
