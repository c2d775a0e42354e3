import { startEncryption } from '../../src/composition/encryption.ts';
import type { Federation } from '../../src/composition/federation.ts';
import type { Kernel } from '../../src/composition/kernel.ts';
import type { OpenedSlices } from '../../src/composition/opened-slices.ts';
import type { Users } from '../../src/composition/users.ts';
import { Devices } from '../../src/devices/index.ts';
import { DeviceKeyChanges, type E2ee, e2eeManifest } from '../../src/e2ee/index.ts';
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
}

/** Users have no account data, where fully-read markers are stored. */
const noMarkers = { find: async () => undefined, set: async () => undefined };

/** Opens the services; call it before jobs are started. */
export async function openEduServices(
  kernel: Kernel,
  rooms: Rooms,
  federation: Federation,
  users: Users,
  opened: OpenedSlices,
): Promise<EduServices> {
  const { engine } = rooms;
  const { configuration } = kernel;
  const keyChanges = new DeviceKeyChanges();
  const devices = new Devices(kernel, [keyChanges, new OwnedRows([toDeviceManifest, e2eeManifest])]);
  const accounts = { ...users.accounts, devices };
  const owners = { ...users, accounts, keyChanges };
  const encryption = await startEncryption(kernel, owners, rooms, federation, opened);
  const typing = new Typing({ ...kernel, roomStream: engine.stream });
  const receipts = new Receipts({ ...kernel, engine, markers: noMarkers });
  const limiter = kernel.userLimiter(configuration.rateLimits.rc_presence.per_user);
  const presence = new Presence({ ...kernel, engine, limiter }, true);
  await presence.start();
  opened.add('presence', { stop: () => presence.stop() });
  opened.add('typing', { stop: () => typing.close() });
  return { typing, receipts, presence, devices, ...encryption };
}
