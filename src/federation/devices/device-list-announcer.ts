import { crossSigningKeys, type Devices, type UnannouncedChange } from '../../devices/index.ts';
import { type Clock, sleep } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, writerFor } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { Sequence, type StreamReader } from '../../kernel/streams/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { Edu } from '../sender/transactions/edu.ts';
import {
  deviceListUpdate,
  type LocalDevices,
  type LocalDevicesDeps,
  readLocalDevices,
  signingKeyUpdate,
} from './local-devices.ts';
import { LocalJoins } from './local-joins.ts';
import { ServersSharingRooms } from './servers-sharing-rooms.ts';
import { type LastUpdate, readLastUpdate, writeLastUpdate } from './store.ts';
import type { AnnouncementTables } from './tables.ts';

/** Stores EDUs until their destinations have acknowledged them. */
export interface Outbox {
  addForAll(writer: AnyWriter, destinations: Iterable<string>, edu: Edu): Promise<void>;
}

export interface DeviceListAnnouncerDeps extends LocalDevicesDeps {
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly log: Logger;
  readonly devices: Devices;
  readonly engine: RoomReader;
  readonly outbox: Outbox;
  readonly serverName: string;
}

/** Maximum number of changes in one round. */
const maxChanges = 200;

/** Milliseconds of the first backoff after a failure. */
const minBackoff = 1_000;

/** Maximum milliseconds of a backoff. */
const maxBackoff = 60_000;

/**
 * Sends changes of local users' devices and cross-signing keys to the servers that share rooms with them: each change
 * once, in order, including changes from just before a stop. All servers receive the same sequence of updates. Each
 * update names the previous update, so that a server that has missed an update fetches the whole list.
 * Source: server-server API, "Device Management". Decision 0096.
 */
export class DeviceListAnnouncer {
  readonly #deps: DeviceListAnnouncerDeps;
  readonly #ids: Sequence;
  readonly #servers: ServersSharingRooms;
  readonly #stopping = new AbortController();
  #isDue = false;
  #running: Promise<void> | undefined;
  readonly #localJoins: LocalJoins;

  private constructor(deps: DeviceListAnnouncerDeps, ids: Sequence) {
    this.#deps = deps;
    this.#ids = ids;
    this.#servers = new ServersSharingRooms(deps.engine, deps.serverName);
    // Without `userId`, the partial state of the room has become complete.
    this.#localJoins = new LocalJoins(deps, ({ roomId, userId }) =>
      userId === undefined
        ? this.#announceToServersUnnamedAtJoin(roomId)
        : this.#announceToNewServers(roomId, userId),
    );
  }

  /** Starts to announce changes, first the changes from before the last stop. */
  static async start(deps: DeviceListAnnouncerDeps): Promise<DeviceListAnnouncer> {
    const announcer = new DeviceListAnnouncer(
      deps,
      await Sequence.open(deps.database, 'device_list_updates'),
    );
    deps.devices.deviceListStream.subscribe(({ userId }) => {
      if (serverOfUser(userId) === deps.serverName) announcer.#wake();
    });
    await announcer.#localJoins.start();
    announcer.#wake();
    return announcer;
  }

  /** Waits for the current round; pending changes are announced after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    while (this.#running) await this.#running;
    await this.#localJoins.stop();
  }

  /** Resolves when all changes so far are in the outbox. */
  async settled(): Promise<void> {
    while (this.#running) await this.#running;
    await this.#localJoins.settled();
  }

  /**
   * Returns the `stream_id` of the last update of a user's list, or 0 when there was none. Devices that are read
   * afterwards include that update.
   */
  async streamIdOf(userId: string): Promise<number> {
    const reader = this.#deps.database.reader<AnnouncementTables>();
    return (await readLastUpdate(reader, userId))?.streamId ?? 0;
  }

  #wake(): void {
    this.#isDue = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#isDue && !this.#stopping.signal.aborted) this.#wake();
    });
  }

  async #run(): Promise<void> {
    const { clock, log, devices } = this.#deps;
    const { signal } = this.#stopping;
    for (let backoff = minBackoff; this.#isDue && !signal.aborted; ) {
      this.#isDue = false;
      try {
        // Changes that are made together are announced together.
        await new Promise(setImmediate);
        const changes = await devices.unannouncedChanges(maxChanges);
        for (const [userId, changesOfUser] of Map.groupBy(changes, ({ userId }) => userId)) {
          if (signal.aborted) return;
          await this.#announce(userId, changesOfUser);
        }
        if (changes.length === maxChanges) this.#isDue = true;
        backoff = minBackoff;
      } catch (error) {
        log.error({ err: error }, 'Device list changes could not be announced to other servers');
        this.#isDue = true;
        await sleep(clock, backoff, signal);
        backoff = Math.min(backoff * 2, maxBackoff);
      }
    }
  }

  async #announce(userId: string, changes: readonly UnannouncedChange[]): Promise<void> {
    const { database, devices, outbox } = this.#deps;
    const servers = await this.#servers.sharedWith(userId);
    const localDevices = await readLocalDevices(this.#deps, userId);
    const ids = new Map(changes.map(({ deviceId }) => [deviceId, this.#ids.next()]));
    await database.transaction<AnnouncementTables, void>(async (writer) => {
      let last: Pick<LastUpdate, 'streamId' | 'deviceId'> | undefined = await readLastUpdate(writer, userId);
      for (const { deviceId: changed } of changes) {
        // `crossSigningKeys` stands for the keys in place of a device id.
        const isCrossSigning = changed === crossSigningKeys;
        if (isCrossSigning) await outbox.addForAll(writer, servers, signingKeys(userId, localDevices));
        // A change of cross-signing keys also repeats the last list update, with a new stream id: a server that did
        // not receive the keys notices the gap in the stream ids, and fetches the keys with the list.
        const deviceId = isCrossSigning ? last?.deviceId : changed;
        if (deviceId === undefined) continue;
        const streamId = ids.get(changed)!;
        const previous = last?.streamId;
        const edu = listUpdate(userId, deviceId, localDevices, { streamId, previous });
        await outbox.addForAll(writer, servers, edu);
        await writeLastUpdate(writer, userId, { streamId, previous: previous ?? null, deviceId });
        last = { streamId, deviceId };
      }
      await devices.markAnnounced(writer, changes);
    });
  }

  /**
   * Repeats the last update for servers that share their first room with a user. A server without the previous
   * update then fetches the whole list; a server that has the previous update applies the repeated update. The last
   * update may stand for a change of cross-signing keys, so the cross-signing keys are sent too.
   */
  async #announceToNewServers(roomId: string, userId: string): Promise<void> {
    await this.#announceTo(await this.#servers.inRoom(roomId), roomId, userId);
  }

  /**
   * Called when the partial state of a room has become complete. Repeats the last update of each local user of the room
   * for the servers that the response to the join did not name (`unnamedAtJoin`): they have missed updates.
   */
  async #announceToServersUnnamedAtJoin(roomId: string): Promise<void> {
    const servers = await this.#servers.unnamedAtJoin(roomId);
    if (servers.size === 0) return;
    for (const userId of await this.#servers.localUsersOf(roomId))
      await this.#announceTo(servers, roomId, userId);
  }

  /** Sends the last update of a user again, to the servers in `servers` that share no other room with the user. */
  async #announceTo(servers: ReadonlySet<string>, roomId: string, userId: string): Promise<void> {
    const { database, outbox } = this.#deps;
    if (servers.size === 0) return;
    const otherSharedServers = await this.#servers.sharedWith(userId, roomId);
    const newServers = [...servers].filter((server) => !otherSharedServers.has(server));
    if (newServers.length === 0) return;
    const localDevices = await readLocalDevices(this.#deps, userId);
    await database.transaction<AnnouncementTables, void>(async (writer) => {
      const last = await readLastUpdate(writer, userId);
      if (!last) return;
      const edus = [
        ...(localDevices.masterKey ? [signingKeys(userId, localDevices)] : []),
        listUpdate(userId, last.deviceId, localDevices, last),
      ];
      for (const edu of edus) await outbox.addForAll(writerFor(writer), newServers, edu);
    });
  }
}

const listUpdate = (
  userId: string,
  deviceId: string,
  localDevices: LocalDevices,
  update: { readonly streamId: number; readonly previous: number | undefined },
): Edu => ({
  type: 'm.device_list_update',
  content: deviceListUpdate(userId, deviceId, localDevices, update),
});

const signingKeys = (userId: string, localDevices: LocalDevices): Edu => ({
  type: 'm.signing_key_update',
  content: signingKeyUpdate(userId, localDevices),
});
