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
 * Users whose keys a client has to ask for again, and users whose keys it need not follow any more.
 * Source: client-server API, "Extensions to /sync" of "End-to-End Encryption"; MSC3884.
 */
export function deviceListSyncSource(deps: DeviceListSyncDeps): SyncSource {
  const { deviceLists, devices, signatureStream } = deps;
  return {
    name: 'device lists',
    follow(feeds) {
      feeds.followUsers(signatureStream, ({ userId }) => [userId]);
      feeds.followUsers(devices.deviceListStream, ({ userId }) => [userId]);
      feeds.followMembers(devices.deviceListStream, ({ userId }) => roomsOf(deps, userId));
    },
    device: {
      extension: 'e2ee',
      isQuiet: (position) => deviceLists.isQuiet(position),
      constant: () => '',
      async members({ userId }, { after, upTo }) {
        // A first sync needs no list: the client asks for all keys anyway.
        const isQuiet = after === undefined || deviceLists.isQuiet(after);
        const lists = isQuiet ? undefined : await deviceLists.changes(userId, after, upTo);
        const isNews = lists !== undefined && lists.changed.length + lists.left.length > 0;
        return { text: isNews ? `,"device_lists":${JSON.stringify(lists)}` : '', isNews };
      },
    },
  };
}

/** The rooms that a user is joined to, at once when they are in memory. */
function roomsOf({ engine, log }: DeviceListSyncDeps, userId: string): string[] | Promise<string[]> {
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
}

const joined = (rooms: Iterable<UserRoom>) =>
  [...rooms].filter(({ membership }) => membership === 'join').map(({ roomId }) => roomId);
