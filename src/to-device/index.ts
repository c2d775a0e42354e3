/** Send-to-device messages, which are queued until the device acknowledges them. */

export { toDeviceManifest } from './manifest.ts';
export { isContentWithinLimit, type MessageMap } from './message-map.ts';
export { toDeviceMigrations } from './migrations.ts';
export { openToDevice, openToDeviceReading } from './open.ts';
export { type DeviceAddress, MessageQueues, type PendingMessages } from './queues.ts';
export { toDeviceRoutes } from './routes.ts';
export { toDeviceSyncSource } from './sync-source.ts';
export { type OutgoingMessages, type RemoteDelivery, ToDevice, type ToDeviceDeps } from './to-device.ts';
