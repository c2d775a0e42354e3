import type { Devices } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database, Reader, Writer } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { Publish, StreamWriter } from '../../kernel/streams/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import { maxDevices, type RemoteKeys } from '../keys/remote-keys.ts';
import type { E2eeTables } from '../tables.ts';
import {
  appendStreamId,
  classifyUpdate,
  type DeviceListUpdate,
  parseDeviceListUpdate,
  parseSigningKeyUpdate,
  type SigningKeyUpdate,
} from './parse-updates.ts';
import type { RemoteList, RemoteListWithDevices } from './remote-list.ts';
import { RemotelyQueriedUsers } from './remotely-queried-users.ts';
import { Resync } from './resync.ts';
import { SharedRooms } from './shared-rooms.ts';
import {
  countDevices,
  deleteDevice,
  markStale,
  readDevice,
  readList,
  readLists,
  usersWithList,
  writeDevice,
  writeSigningKeys,
  writeStreamIds,
} from './store.ts';
import { TrackedUsers } from './tracked-users.ts';

export interface RemoteDeviceListsDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly log: Logger;
  readonly jobs: Jobs;
  readonly devices: Devices;
  readonly engine: RoomReader;
  readonly serverName: string;
  readonly remote: RemoteKeys;
}

/**
 * The devices of users of other servers who share a room with a local user, kept current by what their servers send.
 * A list that has missed something is stale until it was fetched anew; nobody is given a stale one as if it were right.
 * Source: server-server API, "Device Management". Decision 0095.
 */
export class RemoteDeviceLists {
  readonly #deps: RemoteDeviceListsDeps;
  readonly #sharedRooms: SharedRooms;
  readonly #resync: Resync;
  readonly #trackedUsers: TrackedUsers;
  readonly #remotelyQueried = new RemotelyQueriedUsers();

  /** Before `jobs` are started. */
  constructor(deps: RemoteDeviceListsDeps) {
    this.#deps = deps;
    this.#sharedRooms = new SharedRooms(deps.engine, deps.serverName);
    this.#resync = new Resync({
      ...deps,
      sharedRooms: this.#sharedRooms,
      remotelyQueried: this.#remotelyQueried,
    });
    this.#trackedUsers = new TrackedUsers({
      ...deps,
      sharedRooms: this.#sharedRooms,
      fetchMissing: (users) => this.fetchMissing(users),
    });
  }

  /** Begins to follow who comes and goes. Before `jobs` are started. */
  start(): Promise<void> {
    return this.#trackedUsers.start();
  }

  /** Resolves when those who have come or gone are dealt with. */
  settled(): Promise<void> {
    return this.#trackedUsers.settled();
  }

  /** The lists of those users who share a room with a local one; also stale ones. */
  async read(userIds: readonly string[]): Promise<ReadonlyMap<string, RemoteListWithDevices>> {
    const lists = await readLists(this.#reader, userIds);
    const sharing = await this.#sharedRooms.usersSharing(lists.map(({ userId }) => userId));
    return new Map(
      lists.filter(({ userId }) => sharing.has(userId)).map((list) => [list.userId, list] as const),
    );
  }

  /** A client is about to be told of users by their own server, because their lists are not current. */
  async recordRemoteQuery(userIds: readonly string[]): Promise<void> {
    this.#remotelyQueried.add(await this.#sharedRooms.usersSharing(userIds));
  }

  /** Has the lists of those users fetched who share a room with a local one and have none, in the background. */
  async fetchMissing(userIds: readonly string[]): Promise<void> {
    const sharing = await this.#sharedRooms.usersSharing(userIds);
    if (sharing.size === 0) return;
    await this.#deps.database.transaction<E2eeTables, void>(async (writer) => {
      const known = await usersWithList(writer, [...sharing]);
      const others = [...sharing].filter((userId) => !known.has(userId));
      await markStale(writer, others, this.#deps.clock.now());
      for (const userId of others) await this.#resync.schedule(writer, userId);
    });
  }

  /** The server can be reached again: what could not be fetched from it is fetched now. */
  serverIsBack(server: string): Promise<void> {
    return this.#resync.fetchNow(server);
  }

  /** Takes `m.device_list_update` of another server. What is wrong with it is ignored. */
  async receiveUpdate(origin: string, content: JsonObject): Promise<void> {
    const update = parseDeviceListUpdate(origin, content);
    if (!update || !(await this.#sharedRooms.isSharing(update.userId))) return;
    await this.#deps.streams.write<E2eeTables, void>(async (writer, publish) => {
      const list = await readList(writer, update.userId);
      const isNew = !list || (await this.#applyUpdate(writer, list, update));
      if (isNew) await this.#deps.devices.recordListChange(writer, publish, update.userId);
    });
  }

  /** Takes `m.signing_key_update` of another server. What is wrong with it is ignored. */
  async receiveSigningKeys(origin: string, content: JsonObject): Promise<void> {
    const update = parseSigningKeyUpdate(origin, content);
    if (!update || !(await this.#sharedRooms.isSharing(update.userId))) return;
    await this.#deps.streams.write<E2eeTables, void>((writer, publish) =>
      this.#applySigningKeys(writer, publish, update),
    );
  }

  /** Something is known of a user's device that their list does not have: it is fetched anew. */
  async fetchIfDeviceMissing(userId: string, deviceId: string): Promise<void> {
    const list = await readList(this.#reader, userId);
    if (!list || list.stale || (await readDevice(this.#reader, userId, deviceId)) !== undefined) return;
    await this.#deps.database.transaction<E2eeTables, void>((writer) => this.#fetchAgain(writer, list));
  }

  /** @returns whether clients have to look again */
  async #applyUpdate(
    writer: Writer<E2eeTables>,
    list: RemoteList,
    update: DeviceListUpdate,
  ): Promise<boolean> {
    const { userId, deviceId, streamId, keys } = update;
    const place = classifyUpdate(list, update);
    if (place === 'known') return false;
    if (place === 'gap' || streamId === undefined) {
      await this.#fetchAgain(writer, list);
      return true;
    }
    await writeStreamIds(writer, userId, appendStreamId(list.streamIds, streamId));
    const before = await readDevice(writer, userId, deviceId);
    if (keys === undefined) {
      await deleteDevice(writer, userId, deviceId);
      return before !== undefined;
    }
    const text = JSON.stringify(keys);
    if (text === before) return false;
    const isOneTooMany = before === undefined && (await countDevices(writer, userId)) >= maxDevices;
    if (!isOneTooMany) await writeDevice(writer, userId, deviceId, text);
    return !isOneTooMany;
  }

  async #applySigningKeys(
    writer: Writer<E2eeTables>,
    publish: Publish,
    { userId, masterKey, selfSigningKey }: SigningKeyUpdate,
  ): Promise<void> {
    const list = await readList(writer, userId);
    if (list?.stale) await this.#fetchAgain(writer, list);
    else if (list) {
      const keys = {
        masterKey: masterKey ?? list.masterKey,
        selfSigningKey: selfSigningKey ?? list.selfSigningKey,
      };
      await writeSigningKeys(writer, userId, keys);
    }
    await this.#deps.devices.recordListChange(writer, publish, userId);
  }

  async #fetchAgain(writer: Writer<E2eeTables>, { userId, stale }: RemoteList): Promise<void> {
    await markStale(writer, [userId], this.#deps.clock.now());
    await this.#resync.schedule(writer, userId, stale);
  }

  get #reader(): Reader<E2eeTables> {
    return this.#deps.database.reader<E2eeTables>();
  }
}
