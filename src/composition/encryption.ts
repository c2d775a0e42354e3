import { type E2ee, e2eeRoutes, openE2ee } from '../e2ee/index.ts';
import { DirectToDeviceSender, type EduHandlersByType } from '../federation/index.ts';
import { KeysApi } from '../federation-client/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { SyncSource } from '../sync-contract/index.ts';
import { MessageQueues, ToDevice, toDeviceRoutes, toDeviceSyncSource } from '../to-device/index.ts';
import { federateEncryption } from './encryption-federation.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { Shutdown } from './shutdown.ts';
import type { Users } from './users.ts';

/** The server's part in end-to-end encryption. */
export interface Encryption {
  readonly e2ee: E2ee;
  readonly toDevice: ToDevice;
  readonly queues: MessageQueues;
  readonly syncSources: readonly SyncSource[];
  /** Routes for remote servers. */
  readonly federationRoutes: readonly Route[];
  readonly eduHandlers: EduHandlersByType;
}

/** Opens end-to-end encryption; to be called before jobs are started. */
export async function startEncryption(
  kernel: Kernel,
  users: Users,
  rooms: Rooms,
  federation: Federation,
  shutdown: Shutdown,
): Promise<Encryption> {
  const { accounts, keyChanges } = users;
  const queues = new MessageQueues(kernel.database);
  const deps = {
    ...kernel,
    log: kernel.namedLog('e2ee'),
    devices: accounts.devices,
    engine: rooms.engine,
    keyChanges,
    queues,
    reauthenticator: accounts.reauthenticator,
  };
  const e2ee = await openE2ee({ ...deps, remote: new KeysApi(federation.requests) });
  const toDevice = new ToDevice({ ...deps, remote: new DirectToDeviceSender(federation.outbox) });
  const shared = { kernel, users, rooms, federation, e2ee, toDevice };
  const syncSources = [toDeviceSyncSource(queues), ...e2ee.syncSources];
  const { routes: federationRoutes, eduHandlers } = await federateEncryption(shared, shutdown);
  return { e2ee, toDevice, queues, syncSources, federationRoutes, eduHandlers };
}

export const encryptionRoutes = ({ e2ee, toDevice, federationRoutes }: Encryption): Route[] => [
  ...e2eeRoutes(e2ee),
  ...toDeviceRoutes(toDevice),
  ...federationRoutes,
];
