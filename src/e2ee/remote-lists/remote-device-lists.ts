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
import { AskedUsers } from './asked-users.ts';
import { Departures } from './departures.ts';
import type { RemoteList, RemoteListWithDevices } from './remote-list.ts';
import { Resync } from './resync.ts';
import { Sharing } from './sharing.ts';
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
import {
  type DeviceListUpdate,
  parseDeviceListUpdate,
  parseSigningKeyUpdate,
  placeOf,
  remembered,
  type SigningKeyUpdate,
} from './updates.ts';

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
  readonly #sharing: Sharing;
  readonly #resync: Resync;
  readonly #departures: Departures;
  readonly #asked = new AskedUsers();

  /** Before `jobs` are started. */
  constructor(deps: RemoteDeviceListsDeps) {
    this.#deps = deps;
    this.#sharing = new Sharing(deps.engine, deps.serverName);
    this.#resync = new Resync({ ...deps, sharing: this.#sharing, asked: this.#asked });
    this.#departures = new Departures({
      ...deps,
      sharing: this.#sharing,
      wanted: (users) => this.want(users),
    });
  }

  /** Begins to follow who comes and goes. Before `jobs` are started. */
  start(): Promise<void> {
    return this.#departures.start();
  }

  /** Resolves when those who have come or gone are dealt with. */
  settled(): Promise<void> {
    return this.#departures.settled();
  }

  /** The lists of those users who share a room with a local one; also stale ones. */
  async read(userIds: readonly string[]): Promise<ReadonlyMap<string, RemoteListWithDevices>> {
    const lists = await readLists(this.#reader, userIds);
    const sharing = await this.#sharing.of(lists.map(({ userId }) => userId));
    return new Map(
      lists.filter(({ userId }) => sharing.has(userId)).map((list) => [list.userId, list] as const),
    );
  }

  /** A client is about to be told of users by their own server, because their lists are not current. */
  async asked(userIds: readonly string[]): Promise<void> {
    this.#asked.add(await this.#sharing.of(userIds));
  }

  /** Has the lists of those users fetched who share a room with a local one and have none, in the background. */
  async want(userIds: readonly string[]): Promise<void> {
    const sharing = await this.#sharing.of(userIds);
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
    return this.#resync.hasten(server);
  }

  /** Takes `m.device_list_update` of another server. What is wrong with it is ignored. */
  async takeUpdate(origin: string, content: JsonObject): Promise<void> {
    const update = parseDeviceListUpdate(origin, content);
    if (!update || !(await this.#sharing.has(update.userId))) return;
    await this.#deps.streams.write<E2eeTables, void>(async (writer, publish) => {
      const list = await readList(writer, update.userId);
      const isNew = !list || (await this.#applyUpdate(writer, list, update));
      if (isNew) await this.#deps.devices.recordListChange(writer, publish, update.userId);
    });
  }

  /** Takes `m.signing_key_update` of another server. What is wrong with it is ignored. */
  async takeSigningKeys(origin: string, content: JsonObject): Promise<void> {
    const update = parseSigningKeyUpdate(origin, content);
    if (!update || !(await this.#sharing.has(update.userId))) return;
    await this.#deps.streams.write<E2eeTables, void>((writer, publish) =>
      this.#applySigningKeys(writer, publish, update),
    );
  }

  /** Something is known of a user's device that their list does not have: it is fetched anew. */
  async missed(userId: string, deviceId: string): Promise<void> {
    const list = await readList(this.#reader, userId);
    if (!list || list.stale || (await readDevice(this.#reader, userId, deviceId)) !== undefined) return;
    await this.#deps.database.transaction<E2eeTables, void>((writer) => this.#fetchAnew(writer, list));
  }

  /** @returns whether clients have to look again */
  async #applyUpdate(
    writer: Writer<E2eeTables>,
    list: RemoteList,
    update: DeviceListUpdate,
  ): Promise<boolean> {
    const { userId, deviceId, streamId, keys } = update;
    const place = placeOf(list, update);
    if (place === 'known') return false;
    if (place === 'gap' || streamId === undefined) {
      await this.#fetchAnew(writer, list);
      return true;
    }
    await writeStreamIds(writer, userId, remembered(list.streamIds, streamId));
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
    if (list?.stale) await this.#fetchAnew(writer, list);
    else if (list) {
      const keys = {
        masterKey: masterKey ?? list.masterKey,
        selfSigningKey: selfSigningKey ?? list.selfSigningKey,
      };
      await writeSigningKeys(writer, userId, keys);
    }
    await this.#deps.devices.recordListChange(writer, publish, userId);
  }

  async #fetchAnew(writer: Writer<E2eeTables>, { userId, stale }: RemoteList): Promise<void> {
    await markStale(writer, [userId], this.#deps.clock.now());
    await this.#resync.schedule(writer, userId, stale);
  }

  get #reader(): Reader<E2eeTables> {
    return this.#deps.database.reader<E2eeTables>();
  }
}
