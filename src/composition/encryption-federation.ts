import type { E2ee } from '../e2ee/index.ts';
import {
  DeviceListAnnouncer,
  deviceQueryRoutes,
  directToDeviceHandler,
  type EduHandler,
  type EduHandlersByType,
  ToDevicePace,
} from '../federation/index.ts';
import { serverOfUser } from '../protocol/index.ts';
import type { RoomFact } from '../room-engine/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { ToDevice } from '../to-device/index.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { Users } from './users.ts';

interface Deps {
  readonly kernel: Kernel;
  readonly users: Users;
  readonly rooms: Rooms;
  readonly federation: Federation;
  readonly e2ee: E2ee;
  readonly toDevice: ToDevice;
}

/** Maximum number of remote senders' devices that are remembered as checked, so that each is checked once. */
const devicesInMemory = 10_000;

/** Connects end-to-end encryption with remote servers. */
export async function federateEncryption(deps: Deps, opened: OpenedSlices): Promise<void> {
  const { kernel, users, rooms, federation, e2ee, toDevice } = deps;
  const { outbox, destinations } = federation;
  const log = kernel.namedLog('e2ee');
  const lists = e2ee.remoteLists;
  const deviceDeps = {
    devices: users.accounts.devices,
    query: e2ee.query,
    sendDisplayNames: kernel.configuration.devices.allow_device_name_lookup_over_federation,
  };
  const announcer = await DeviceListAnnouncer.start({
    ...kernel,
    ...deviceDeps,
    log,
    engine: rooms.engine,
    outbox,
  });
  const fetchIfMissing = async (userId: string, deviceId: string) =>
    lists?.fetchIfDeviceMissing(userId, deviceId);
  if (lists) {
    destinations.onReturn((server) => {
      lists
        .serverIsBack(server)
        .catch((error: unknown) =>
          log.error({ err: error, server }, 'Failed to schedule the download of device lists'),
        );
    });
    followSenders(deps, fetchIfMissing);
  }
  const pace = new ToDevicePace(kernel.clock);
  opened.add('announcements of devices', {
    routes: deviceQueryRoutes({ ...kernel, ...deviceDeps, claiming: e2ee.claiming, announcer }),
    eduHandlers: {
      'm.direct_to_device': directToDeviceHandler({ ...kernel, toDevice, pace, sawDevice: fetchIfMissing }),
      ...(lists && deviceListHandlers(lists)),
    },
    stop: () => announcer.stop(),
  });
  if (lists) opened.add('device lists of other servers', { stop: () => lists.settled() });
}

function deviceListHandlers(lists: NonNullable<E2ee['remoteLists']>): EduHandlersByType {
  const receiveSigningKeys: EduHandler = (origin, content) => lists.receiveSigningKeys(origin, content);
  return {
    'm.device_list_update': (origin, content) => lists.receiveUpdate(origin, content),
    'm.signing_key_update': receiveSigningKeys,
    // The unstable type of `m.signing_key_update`; some servers send only this type.
    'org.matrix.signing_key_update': receiveSigningKeys,
  };
}

/**
 * Requests the device list of a remote sender when an encrypted event names a device that is not known: the cached list
 * is outdated.
 */
function followSenders(
  { kernel, rooms }: Deps,
  fetchIfMissing: (userId: string, deviceId: string) => Promise<unknown>,
): void {
  const seen = kernel.caches.create<string, true>('seen_remote_devices', { size: devicesInMemory });
  const log = kernel.namedLog('e2ee');
  rooms.engine.stream.subscribe(({ stored: { event } }: RoomFact) => {
    const { sender, type, content } = event;
    const { device_id: deviceId } = content;
    if (type !== 'm.room.encrypted' || serverOfUser(sender) === kernel.serverName) return;
    if (typeof deviceId !== 'string' || deviceId.length > 255 || deviceId.includes('\0')) return;
    const key = `${sender} ${deviceId}`;
    if (seen.has(key)) return;
    seen.set(key, true);
    fetchIfMissing(sender, deviceId).catch((error: unknown) =>
      log.error({ err: error, sender }, 'Failed to check the device of a sender'),
    );
  });
}
