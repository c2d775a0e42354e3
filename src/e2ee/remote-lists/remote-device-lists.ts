import type { Devices } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database, Reader, Writer } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { Publish, StreamWriter } from '../../kernel/streams/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import { chooseUsers } from '../chosen-users.ts';
import { maxDevices, type RemoteKeys } from '../remote-keys/remote-keys.ts';
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
  listBytesOf,
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

/** The stored lists of users, by user id. */
export interface StoredLists {
  readonly lists: ReadonlyMap<string, RemoteListWithDevices>;
  /** Users whose lists would make the response too large. */
  readonly leftOut: ReadonlySet<string>;
}

/**
 * Stores the device lists of remote users who share a room with a local user, and applies the updates that
 * their servers send. A list that misses an update is stale until it was fetched again; stale lists are not
 * used to answer queries.
 * Source: server-server API, "Device Management". Decision 0095.
 */
export class RemoteDeviceLists {
  readonly #deps: RemoteDeviceListsDeps;
  readonly #sharedRooms: SharedRooms;
  readonly #resync: Resync;
  readonly #trackedUsers: TrackedUsers;
  readonly #remotelyQueried = new RemotelyQueriedUsers();

  /** Registers the jobs; the constructor must be called before jobs are started. */
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

  /** Starts to follow membership changes. Must be called before jobs are started. */
  start(): Promise<void> {
    return this.#trackedUsers.start();
  }

  /** Resolves when all membership changes so far are processed. */
  settled(): Promise<void> {
    return this.#trackedUsers.settled();
  }

  /**
   * Returns the lists of the users who share a room with a local user, including stale lists, as far as they fit into one
   * response.
   */
  async read(userIds: readonly string[]): Promise<StoredLists> {
    const bytesByUser = await listBytesOf(this.#reader, userIds);
    const sharing = await this.#sharedRooms.usersSharing([...bytesByUser.keys()]);
    const { batches, leftOut } = chooseUsers([...sharing], bytesByUser);
    const lists = new Map<string, RemoteListWithDevices>();
    for (const [index, batch] of batches.entries()) {
      if (index > 0) await new Promise(setImmediate);
      for (const list of await readLists(this.#reader, batch)) lists.set(list.userId, list);
    }
    return { lists, leftOut };
  }

  /**
   * Records that clients receive the keys of these users from the users' own servers, because the stored lists are not
   * current.
   */
  async recordRemoteQuery(userIds: readonly string[]): Promise<void> {
    this.#remotelyQueried.add(await this.#sharedRooms.usersSharing(userIds));
  }

  /** Schedules a fetch for the users who share a room with a local user and have no list. */
  async fetchMissing(userIds: readonly string[]): Promise<void> {
    const sharing = await this.#sharedRooms.usersSharing(userIds);
    if (sharing.size === 0) return;
    await this.#deps.database.transaction<E2eeTables, void>(async (writer) => {
      const known = await usersWithList(writer, [...sharing]);
      const usersWithoutList = [...sharing].filter((userId) => !known.has(userId));
      await markStale(writer, usersWithoutList, this.#deps.clock.now());
      for (const userId of usersWithoutList) await this.#resync.schedule(writer, userId);
    });
  }

  /** Fetches the stale lists of a server's users at once, because the server is reachable again. */
  serverIsBack(server: string): Promise<void> {
    return this.#resync.fetchNow(server);
  }

  /**
   * Applies `m.device_list_update` of another server. Ignores malformed updates, and users who share no room with a local
   * user. When no list of the user is stored, only tells clients that the list has changed.
   */
  async receiveUpdate(origin: string, content: JsonObject): Promise<void> {
    const update = parseDeviceListUpdate(origin, content);
    if (!update || !(await this.#sharedRooms.isSharing(update.userId))) return;
    await this.#deps.streams.write<E2eeTables, void>(async (writer, publish) => {
      const list = await readList(writer, update.userId);
      const hasChanged = !list || (await this.#applyUpdate(writer, list, update));
      if (hasChanged) await this.#deps.devices.recordListChange(writer, publish, update.userId);
    });
  }

  /** Applies `m.signing_key_update` of another server. Ignores updates for the same reasons as `receiveUpdate`. */
  async receiveSigningKeys(origin: string, content: JsonObject): Promise<void> {
    const update = parseSigningKeyUpdate(origin, content);
    if (!update || !(await this.#sharedRooms.isSharing(update.userId))) return;
    await this.#deps.streams.write<E2eeTables, void>((writer, publish) =>
      this.#applySigningKeys(writer, publish, update),
    );
  }

  /** Fetches a user's list again when a message has arrived from a device that the list lacks. */
  async fetchIfDeviceMissing(userId: string, deviceId: string): Promise<void> {
    const list = await readList(this.#reader, userId);
    if (!list || list.stale || (await readDevice(this.#reader, userId, deviceId)) !== undefined) return;
    await this.#deps.database.transaction<E2eeTables, void>((writer) => this.#fetchAgain(writer, list));
  }

  /** @returns whether clients have to query the keys again */
  async #applyUpdate(
    writer: Writer<E2eeTables>,
    list: RemoteList,
    update: DeviceListUpdate,
  ): Promise<boolean> {
    const { userId, deviceId, streamId, keys } = update;
    const relation = classifyUpdate(list, update);
    if (relation === 'known') return false;
    if (relation === 'gap' || streamId === undefined) {
      await this.#fetchAgain(writer, list);
      return true;
    }
    await writeStreamIds(writer, userId, appendStreamId(list.streamIds, streamId));
    const storedKeys = await readDevice(writer, userId, deviceId);
    if (keys === undefined) {
      await deleteDevice(writer, userId, deviceId);
      return storedKeys !== undefined;
    }
    const text = JSON.stringify(keys);
    if (text === storedKeys) return false;
    const exceedsLimit = storedKeys === undefined && (await countDevices(writer, userId)) >= maxDevices;
    if (!exceedsLimit) await writeDevice(writer, userId, deviceId, text);
    return !exceedsLimit;
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
