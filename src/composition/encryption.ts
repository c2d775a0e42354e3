import { type E2ee, e2eeRoutes, openE2ee } from '../e2ee/index.ts';
import { DirectMessages } from '../federation/index.ts';
import { KeysApi } from '../federation-client/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { UserRoom } from '../room-engine/index.ts';
import type { Rooms } from '../rooms/index.ts';
import { type Feeds, UserPart } from '../sync/index.ts';
import { ToDevice, toDeviceRoutes } from '../to-device/index.ts';
import { federateEncryption } from './encryption-federation.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { People } from './people.ts';
import type { Shutdown } from './shutdown.ts';

/** What the server does for end-to-end encryption. */
export interface Encryption {
  readonly e2ee: E2ee;
  readonly toDevice: ToDevice;
  /** For other servers. */
  readonly federationRoutes: readonly Route[];
}

/** Before jobs are started. */
export async function startEncryption(
  kernel: Kernel,
  people: People,
  rooms: Rooms,
  federation: Federation,
  shutdown: Shutdown,
): Promise<Encryption> {
  const { accounts, keyUpkeep, messageQueues } = people;
  const parts = {
    ...kernel,
    log: kernel.namedLog('e2ee'),
    devices: accounts.devices,
    engine: rooms.engine,
    upkeep: keyUpkeep,
    queues: messageQueues,
    reauthenticator: accounts.reauthenticator,
  };
  const e2ee = await openE2ee({ ...parts, remote: new KeysApi(federation.requests) });
  const toDevice = new ToDevice({ ...parts, remote: new DirectMessages(federation.outbox) });
  const shared = { kernel, people, rooms, federation, e2ee, toDevice };
  return { e2ee, toDevice, federationRoutes: await federateEncryption(shared, shutdown) };
}

/** Lets those who sync hear of keys and messages. */
export function followEncryption(
  kernel: Kernel,
  feeds: Feeds,
  people: People,
  { e2ee }: Encryption,
  { engine }: Rooms,
): void {
  const { accounts, keyUpkeep, messageQueues } = people;
  const itsUser = ({ userId }: { userId: string }) => [userId];
  feeds.followUsers(messageQueues.toDeviceStream, () => UserPart.toDevice, itsUser);
  feeds.followUsers(keyUpkeep.keyStream, () => UserPart.keys, itsUser);
  feeds.followUsers(e2ee.signatureStream, () => UserPart.deviceLists, itsUser);
  feeds.followUsers(accounts.devices.deviceListStream, () => UserPart.deviceLists, itsUser);
  const log = kernel.namedLog('e2ee');
  feeds.followMembers(accounts.devices.deviceListStream, UserPart.deviceLists, ({ userId }) => {
    const known = engine.userRooms.peek(userId);
    if (known) return joined(known.values());
    return engine.userRooms.of(userId).then(
      (rooms) => joined(rooms.values()),
      (error: unknown) => {
        log.error(
          { err: error },
          'could not wake those who share rooms with a user whose devices have changed',
        );
        return [];
      },
    );
  });
}

const joined = (rooms: Iterable<UserRoom>) =>
  [...rooms].filter(({ membership }) => membership === 'join').map(({ roomId }) => roomId);

export const encryptionRoutes = ({ e2ee, toDevice, federationRoutes }: Encryption): Route[] => [
  ...e2eeRoutes(e2ee),
  ...toDeviceRoutes(toDevice),
  ...federationRoutes,
];
