import { startEncryption } from '../../src/composition/encryption.ts';
import type { Federation } from '../../src/composition/federation.ts';
import type { Kernel } from '../../src/composition/kernel.ts';
import type { People } from '../../src/composition/people.ts';
import type { Shutdown } from '../../src/composition/shutdown.ts';
import { Devices } from '../../src/devices/index.ts';
import { type E2ee, KeyUpkeep } from '../../src/e2ee/index.ts';
import type { Route } from '../../src/kernel/http/index.ts';
import { Presence } from '../../src/presence/index.ts';
import { Receipts } from '../../src/receipts/index.ts';
import type { Rooms } from '../../src/rooms/index.ts';
import { MessageQueues, type ToDevice } from '../../src/to-device/index.ts';
import { Typing } from '../../src/typing/index.ts';

/** What a server has to do with besides events: who types, has read and is there; devices, their keys and messages. */
export interface Besides {
  readonly typing: Typing;
  readonly receipts: Receipts;
  readonly presence: Presence;
  readonly devices: Devices;
  readonly queues: MessageQueues;
  readonly e2ee: E2ee;
  readonly toDevice: ToDevice;
  /** What other servers ask of devices. */
  readonly routes: readonly Route[];
}

/** Nobody has account data, which is where read markers are. */
const noMarkers = { find: async () => undefined, set: async () => undefined };

/** Before jobs are started. */
export async function openBesides(
  kernel: Kernel,
  rooms: Rooms,
  federation: Federation,
  people: People,
  shutdown: Shutdown,
): Promise<Besides> {
  const { engine } = rooms;
  const { configuration } = kernel;
  const keyUpkeep = new KeyUpkeep();
  const queues = new MessageQueues(kernel.database);
  const devices = new Devices(kernel, [keyUpkeep, queues]);
  const accounts = { ...people.accounts, devices };
  const owners = { ...people, accounts, keyUpkeep, messageQueues: queues };
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
  return { typing, receipts, presence, devices, queues, ...encryption, routes: federationRoutes };
}
