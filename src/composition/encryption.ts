import { type E2ee, openE2ee } from '../e2ee/index.ts';
import { DirectToDeviceSender, UnprovenRecipients } from '../federation/index.ts';
import { KeysApi } from '../federation-client/index.ts';
import type { Rooms } from '../rooms/index.ts';
import { type MessageQueues, openToDevice, type ToDevice } from '../to-device/index.ts';
import { federateEncryption } from './encryption-federation.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { Users } from './users.ts';

/** The server's part in end-to-end encryption. */
export interface Encryption {
  readonly e2ee: E2ee;
  readonly toDevice: ToDevice;
  readonly queues: MessageQueues;
}

/** Opens end-to-end encryption and to-device messages. Must be called before jobs are started. */
export async function startEncryption(
  kernel: Kernel,
  users: Users,
  rooms: Rooms,
  federation: Federation,
  opened: OpenedSlices,
): Promise<Encryption> {
  const { accounts, keyChanges } = users;
  const deps = {
    ...kernel,
    log: kernel.namedLog('e2ee'),
    devices: accounts.devices,
    engine: rooms.engine,
    keyChanges,
    reauthenticator: accounts.reauthenticator,
  };
  const unproven = new UnprovenRecipients(federation.destinations, kernel.clock);
  const remote = new DirectToDeviceSender(federation.outbox, unproven);
  const { toDevice, queues } = opened.add('to-device messages', openToDevice({ ...deps, remote }));
  const e2ee = opened.add(
    'end-to-end encryption',
    await openE2ee({ ...deps, queues, remote: new KeysApi(federation.requests) }),
  );
  await federateEncryption({ kernel, users, rooms, federation, e2ee, toDevice }, opened);
  return { e2ee, toDevice, queues };
}
