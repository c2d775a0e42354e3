import type { Devices } from '../../devices/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { Stream } from '../../kernel/streams/index.ts';
import type { RoomReader, UserRoom } from '../../room-engine/index.ts';
import type { SyncSource } from '../../sync-contract/index.ts';
import type { DeviceLists, SignatureChange } from './device-lists.ts';

export interface DeviceListSyncDeps {
  readonly deviceLists: DeviceLists;
  readonly devices: Pick<Devices, 'deviceListStream'>;
  readonly signatureStream: Stream<SignatureChange>;
  readonly engine: RoomReader;
  readonly log: Logger;
}

/**
 * Adds `device_lists` to sync responses: users whose keys the client has to query again, and users whose
 * device lists it can stop tracking.
 * Source: client-server API, "Extensions to /sync" of "End-to-End Encryption"; MSC3884.
 */
export function deviceListSyncSource(deps: DeviceListSyncDeps): SyncSource {
  const { deviceLists, devices, signatureStream } = deps;
  return {
    name: 'device lists',
    follow(feeds) {
      feeds.followUsers(signatureStream, ({ userId }) => [userId]);
      feeds.followUsers(devices.deviceListStream, ({ userId }) => [userId]);
      feeds.followMembers(devices.deviceListStream, ({ userId }) => joinedRooms(deps, userId));
    },
    device: {
      extension: 'e2ee',
      isQuiet: (position) => deviceLists.isQuiet(position),
      constant: () => '',
      async fields({ userId }, { after, upTo }) {
        // An initial sync needs no list, because the client queries all keys anyway.
        const isQuiet = after === undefined || deviceLists.isQuiet(after);
        const lists = isQuiet ? undefined : await deviceLists.changes(userId, after, upTo);
        const hasNewData = lists !== undefined && lists.changed.length + lists.left.length > 0;
        return { text: hasNewData ? `,"device_lists":${JSON.stringify(lists)}` : '', hasNewData };
      },
    },
  };
}

/** The joined rooms of a user, without a promise when they are in memory. */
function joinedRooms({ engine, log }: DeviceListSyncDeps, userId: string): string[] | Promise<string[]> {
  const cachedRooms = engine.userRooms.peek(userId);
  if (cachedRooms) return joinedRoomIds(cachedRooms.values());
  return engine.userRooms.of(userId).then(
    (rooms) => joinedRoomIds(rooms.values()),
    (error: unknown) => {
      log.error(
        { err: error },
        'Failed to find the rooms of a user whose device list has changed: syncs of the members were not woken',
      );
      return [];
    },
  );
}

const joinedRoomIds = (rooms: Iterable<UserRoom>) =>
  [...rooms].filter(({ membership }) => membership === 'join').map(({ roomId }) => roomId);
