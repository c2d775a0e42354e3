import type { DeviceCleanup } from '../../../devices/index.ts';
import { writerFor } from '../../../kernel/database/index.ts';
import { deleteOfDevices } from './store.ts';
import type { SlidingSyncTables } from './tables.ts';

/** Deletes the connections of removed devices. */
export const slidingSyncCleanup: DeviceCleanup = {
  devicesRemoved: (writer, _publish, userId, deviceIds) =>
    deleteOfDevices(writerFor<SlidingSyncTables>(writer), userId, deviceIds),
};
