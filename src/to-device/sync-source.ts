import type { SyncSource } from '../sync-contract/index.ts';
import type { MessageQueues } from './queues.ts';

/**
 * Adds to-device messages to sync responses. Source: client-server API, "Send-to-Device messaging"; MSC3885
 * (sliding sync).
 */
export const toDeviceSyncSource = (queues: MessageQueues): SyncSource => ({
  name: 'messages to devices',
  follow: (feeds) => feeds.followUsers(queues.toDeviceStream, ({ userId }) => [userId]),
  deviceQueue: queues,
});
