import { startEncryption } from '../../src/composition/encryption.ts';
import type { Federation } from '../../src/composition/federation.ts';
import type { Kernel } from '../../src/composition/kernel.ts';
import type { Shutdown } from '../../src/composition/shutdown.ts';
import type { Users } from '../../src/composition/users.ts';
import { Devices } from '../../src/devices/index.ts';
import { DeviceKeyChanges, type E2ee, e2eeManifest } from '../../src/e2ee/index.ts';
import type { EduHandlersByType } from '../../src/federation/index.ts';
import type { Route } from '../../src/kernel/http/index.ts';
import { OwnedRows } from '../../src/kernel/slices/index.ts';
import { Presence } from '../../src/presence/index.ts';
import { Receipts } from '../../src/receipts/index.ts';
import type { Rooms } from '../../src/rooms/index.ts';
import { type MessageQueues, type ToDevice, toDeviceManifest } from '../../src/to-device/index.ts';
import { Typing } from '../../src/typing/index.ts';

/** The services behind EDUs: typing, receipts, presence, to-device messages, devices and their keys. */
export interface EduServices {
  readonly typing: Typing;
  readonly receipts: Receipts;
  readonly presence: Presence;
  readonly devices: Devices;
  readonly queues: MessageQueues;
  readonly e2ee: E2ee;
  readonly toDevice: ToDevice;
  /** Federation endpoints for devices and keys. */
  readonly routes: readonly Route[];
  readonly eduHandlers: EduHandlersByType;
}

/** Users have no account data, where fully-read markers are stored. */
const noMarkers = { find: async () => undefined, set: async () => undefined };

/** Opens the services; call it before jobs are started. */
export async function openEduServices(
  kernel: Kernel,
  rooms: Rooms,
  federation: Federation,
  users: Users,
  shutdown: Shutdown,
): Promise<EduServices> {
  const { engine } = rooms;
  const { configuration } = kernel;
  const keyChanges = new DeviceKeyChanges();
  const devices = new Devices(kernel, [keyChanges, new OwnedRows([toDeviceManifest, e2eeManifest])]);
  const accounts = { ...users.accounts, devices };
  const owners = { ...users, accounts, keyChanges };
  const { federationRoutes, ...encryption } = await startEncryption(
    kernel,
    owners,
    rooms,
    federation,
    shutdown,
  );
  const typing = new Typing({ ...kernel, roomStream: engine.stream });
  const receipts = new Receipts({ ...kernel, engine, markers: noMarkers });
  const limiter = kernel.userLimiter(configuration.rateLimits.rc_presence.per_user);
  const presence = new Presence({ ...kernel, engine, limiter }, true);
  await presence.start();
  shutdown.add('presence', () => presence.stop());
  shutdown.add('typing', () => typing.close());
  return { typing, receipts, presence, devices, ...encryption, routes: federationRoutes };
}
