import { type Cache, type CacheRegistry, MiB } from '../../../kernel/caches/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import { KeyedMutex } from '../../../kernel/keyed-mutex.ts';
import { LoadOnce } from '../../../kernel/load-once.ts';
import type { Randomness } from '../../../kernel/randomness.ts';
import { badJson } from '../../../protocol/index.ts';
import { Connection, type ConnectionAddress, type SentChanges } from './connection.ts';
import { type ConnectionPosition, unknownPos } from './position.ts';
import { type RunningRequest, RunningRequests } from './running-requests.ts';
import { StateTexts } from './state-texts.ts';
import { readConnection, readRooms, replaceConnection, writeGeneration } from './store.ts';
import type { SlidingSyncTables } from './tables.ts';

export interface ConnectionsDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** Maximum estimated bytes of all cached connections. */
const maxBytes = 20 * MiB;

/** Estimated bytes of a connection without rooms. */
const connectionBytes = 1_000;

/** Estimated bytes of the sent state of a room. */
const roomBytes = 120;

/**
 * Maximum number of connections of a device. A further connection replaces the least recently used connection, whose
 * client must start again.
 */
const maxPerDevice = 16;

/** Maximum number of connections of all devices of a user. */
const maxPerUser = 256;

/** A request and its connection. */
export interface ConnectedRequest extends RunningRequest {
  readonly connection: Connection;
}

/** The connections of all devices: on disk, and in memory while they are used. */
export class Connections {
  readonly #deps: ConnectionsDeps;
  readonly #cache: Cache<string, Connection>;
  readonly #loading = new LoadOnce<string, Connection | undefined>();
  /** The `required_state` parameters on disk, by connection. Connections without an entry have not been written yet. */
  readonly #onDisk = new WeakMap<Connection, StateTexts>();
  readonly #requests = new RunningRequests();
  /** Loads and saves each connection one operation at a time. */
  readonly #saving = new KeyedMutex();

  constructor(deps: ConnectionsDeps) {
    this.#deps = deps;
    this.#cache = deps.caches.create('sliding_sync_connections', {
      maxBytes,
      sizeOf: (connection) =>
        connectionBytes +
        roomBytes * connection.maxRooms +
        connection.sentDetails.bytes +
        (this.#onDisk.get(connection)?.length ?? 0) +
        (connection.lastAnswer?.lists.length ?? 0),
    });
  }

  /**
   * Begins a request on a new connection. When the new connection is saved for the first time, it replaces the
   * connection of the same name.
   */
  begin(requested: ConnectionAddress): ConnectedRequest {
    const id = Buffer.from(this.#deps.randomness.bytes(6)).readUIntBE(0, 6);
    const address = addressOf(requested, id);
    const stored = { generation: 0, newest: 0, rooms: new Map(), unreceived: new Set<number>() };
    return { ...this.#requests.begin(keyOf(address)), connection: new Connection(id, address, stored) };
  }

  /**
   * Begins a request of a client that comes with a position.
   * @throws MatrixError M_UNKNOWN_POS
   */
  async find(requested: ConnectionAddress, position: ConnectionPosition): Promise<ConnectedRequest> {
    const address = addressOf(requested, position.connection);
    const key = keyOf(address);
    const load = () =>
      this.#saving.run(key, async () => this.#cache.peek(key) ?? this.#load(address, position));
    const connection = this.#cache.get(key) ?? (await this.#loading.run(key, load));
    if (connection?.id !== position.connection || !connection.accept(position.generation)) throw unknownPos();
    // `accept` discards the answer to an earlier request. Nothing is awaited after it, so that no other request
    // intervenes.
    return { ...this.#requests.begin(key), connection };
  }

  /**
   * Waits until earlier answers are saved, and begins the next generation of a connection with the data that an answer
   * sends.
   * @returns the number of the generation, after its changes are on disk if there are any; `undefined` when a newer
   * request has superseded this request: then nothing is saved
   * @throws MatrixError M_UNKNOWN_POS when the connection was replaced or deleted, or its requests contain too many
   * different `required_state`; M_BAD_JSON when one request alone contains too many
   */
  save(
    { connection, superseded }: Pick<ConnectedRequest, 'connection' | 'superseded'>,
    changes: SentChanges,
  ): Promise<number | undefined> {
    return this.#saving.run(keyOf(connection.address), async () =>
      superseded.aborted ? undefined : this.#save(connection, changes),
    );
  }

  async #save(connection: Connection, changes: SentChanges): Promise<number> {
    const { generation, toWrite } = connection.next(changes);
    const statesOnDisk = this.#onDisk.get(connection);
    if (statesOnDisk && toWrite.size === 0) return generation;
    const states = (statesOnDisk ?? StateTexts.first).withStates(toWrite);
    if (states.areTooMany) throw statesOnDisk ? unknownPos() : badJson('Too many different required_state');
    for (const [roomNid, sent] of toWrite) if (sent) toWrite.set(roomNid, states.withSharedText(sent));
    const { id, address } = connection;
    const now = this.#deps.clock.now();
    const floor = connection.generation;
    const outdated = connection.takeOutdated();
    const bounds = { maxOtherOfDevice: maxPerDevice - 1, maxOtherOfUser: maxPerUser - 1 };
    const deleted = await this.#deps.database.transaction<SlidingSyncTables, Deleted>(async (writer) => {
      const replaced = statesOnDisk ? [] : await replaceConnection(writer, id, address, { ...bounds, now });
      const written = { id, floor, states: states.all, hasNewStates: states !== statesOnDisk };
      const isGenerationWritten = await writeGeneration(writer, written, {
        generation,
        changes: toWrite,
        outdated,
        now,
      });
      return isGenerationWritten ? replaced : undefined;
    });
    if (!deleted) {
      if (this.#cache.peek(keyOf(address)) === connection) this.#cache.delete(keyOf(address));
      throw unknownPos();
    }
    for (const deletedAddress of deleted) this.#cache.delete(keyOf(deletedAddress));
    this.#onDisk.set(connection, states);
    this.#cache.set(keyOf(address), connection);
    return generation;
  }

  /** Measures a cached connection again after an answer has changed its `sentDetails`. */
  remeasure({ address }: Connection): void {
    this.#cache.remeasure(keyOf(address));
  }

  async #load(address: ConnectionAddress, position: ConnectionPosition): Promise<Connection | undefined> {
    const reader = this.#deps.database.reader<SlidingSyncTables>();
    const stored = await readConnection(reader, address);
    if (stored?.id !== position.connection || position.generation < stored.floor) return undefined;
    const { generation } = position;
    const connection = new Connection(stored.id, address, {
      generation,
      ...(await readRooms(reader, stored, generation)),
    });
    this.#onDisk.set(connection, new StateTexts(stored.states));
    this.#cache.set(keyOf(address), connection);
    return connection;
  }
}

/**
 * The addresses of the connections that were deleted because a new connection was stored; `undefined` when the
 * connection of the answer was itself deleted or replaced.
 */
type Deleted = readonly ConnectionAddress[] | undefined;

/**
 * Returns the address that a connection is stored at. Clients without a device id cannot be distinguished, so each of
 * their connections has a name of its own: otherwise two clients of a user would replace each other's connection.
 */
const addressOf = (requested: ConnectionAddress, id: number): ConnectionAddress =>
  requested.deviceId === '' ? { ...requested, name: `${requested.name} ${id}` } : requested;

const keyOf = ({ userId, deviceId, name }: ConnectionAddress) => JSON.stringify([userId, deviceId, name]);
