import { crossSigningKeys, type Devices, type UnannouncedChange } from '../../devices/index.ts';
import { type Clock, sleep } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, writerFor } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { Sequence, type StreamReader } from '../../kernel/streams/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { Edu } from '../sender/edus/edu.ts';
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

/** Keeps EDUs until their destinations have them. */
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

/** Changes in one round. */
const changesAtOnce = 200;

/** Milliseconds between attempts after a failure: first and longest. */
const [firstPause, longestPause] = [1_000, 60_000];

/**
 * Tells the servers that share rooms with a local user what has become of their devices and cross-signing keys: each
 * change once, in their order, also those that were made just before the server stopped. All servers are sent the same
 * sequence of updates, in which each names the one before; a server that has missed some fetches the whole list.
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
    this.#localJoins = new LocalJoins(deps, ({ roomId, userId }) =>
      this.#announceToNewServers(roomId, userId),
    );
  }

  /** Begins to announce, first what was left. */
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

  /** Waits for the round at work; what is left is announced after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    while (this.#running) await this.#running;
    await this.#localJoins.stop();
  }

  /** Resolves when everything that has changed so far is on its way. */
  async settled(): Promise<void> {
    while (this.#running) await this.#running;
    await this.#localJoins.settled();
  }

  /** The place of a user's list in the sequence of its updates: what is read after this contains that one. */
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
    for (let pause = firstPause; this.#isDue && !signal.aborted; ) {
      this.#isDue = false;
      try {
        // Changes that are made together are announced together.
        await new Promise(setImmediate);
        const changes = await devices.unannouncedChanges(changesAtOnce);
        for (const [userId, ofUser] of Map.groupBy(changes, ({ userId }) => userId)) {
          if (signal.aborted) return;
          await this.#announce(userId, ofUser);
        }
        if (changes.length === changesAtOnce) this.#isDue = true;
        pause = firstPause;
      } catch (error) {
        log.error({ err: error }, 'changes of devices could not be announced to other servers');
        this.#isDue = true;
        await sleep(clock, pause, signal);
        pause = Math.min(pause * 2, longestPause);
      }
    }
  }

  async #announce(userId: string, changes: readonly UnannouncedChange[]): Promise<void> {
    const { database, devices, outbox } = this.#deps;
    const audience = await this.#servers.of(userId);
    const own = await readLocalDevices(this.#deps, userId);
    const ids = new Map(changes.map(({ deviceId }) => [deviceId, this.#ids.next()]));
    await database.transaction<AnnouncementTables, void>(async (writer) => {
      let last: Pick<LastUpdate, 'streamId' | 'deviceId'> | undefined = await readLastUpdate(writer, userId);
      for (const { deviceId: changed } of changes) {
        const isIdentity = changed === crossSigningKeys;
        if (isIdentity) await outbox.addForAll(writer, audience, signingKeys(userId, own));
        // Other cross-signing keys count as well: who was not told of them sees a gap, and fetches them with the list.
        const deviceId = isIdentity ? last?.deviceId : changed;
        if (deviceId === undefined) continue;
        const [streamId, previous] = [ids.get(changed)!, last?.streamId];
        await outbox.addForAll(writer, audience, listUpdate(userId, deviceId, own, { streamId, previous }));
        await writeLastUpdate(writer, userId, { streamId, previous: previous ?? null, deviceId });
        last = { streamId, deviceId };
      }
      await devices.markAnnounced(writer, changes);
    });
  }

  /**
   * Servers that share their first room with a user are told of their list: the last update again. Who does not know the one before it
   * fetches the list, and so does who knows nothing. Who does know it takes it as the next one, which it may have been
   * for cross-signing keys, so these go with it.
   */
  async #announceToNewServers(roomId: string, userId: string): Promise<void> {
    const { database, outbox } = this.#deps;
    const servers = await this.#servers.inRoom(roomId);
    if (servers.size === 0) return;
    const others = await this.#servers.of(userId, roomId);
    const newcomers = [...servers].filter((server) => !others.has(server));
    if (newcomers.length === 0) return;
    const own = await readLocalDevices(this.#deps, userId);
    await database.transaction<AnnouncementTables, void>(async (writer) => {
      const last = await readLastUpdate(writer, userId);
      if (!last) return;
      if (own.masterKey) await outbox.addForAll(writerFor(writer), newcomers, signingKeys(userId, own));
      await outbox.addForAll(writerFor(writer), newcomers, listUpdate(userId, last.deviceId, own, last));
    });
  }
}

const listUpdate = (
  userId: string,
  deviceId: string,
  own: LocalDevices,
  place: { readonly streamId: number; readonly previous: number | undefined },
): Edu => ({ type: 'm.device_list_update', content: deviceListUpdate(userId, deviceId, own, place) });

const signingKeys = (userId: string, own: LocalDevices): Edu => ({
  type: 'm.signing_key_update',
  content: signingKeyUpdate(userId, own),
});
