import { type Cache, type CacheRegistry, MiB } from '../../../kernel/caches/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import { LoadOnce } from '../../../kernel/load-once.ts';
import type { Randomness } from '../../../kernel/randomness.ts';
import { Connection, type ConnectionAddress, type SentChanges } from './connection.ts';
import { type ConnectionPosition, unknownPos } from './position.ts';
import { nothingSent } from './sent-room.ts';
import { readConnection, readRooms, replaceConnection, writeGeneration } from './store.ts';
import type { SlidingSyncTables } from './tables.ts';

export interface ConnectionsDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** Maximum estimated bytes of all cached connections, of one without rooms, and of what is known of a room. */
const [maxBytes, connectionBytes, roomBytes] = [20 * MiB, 1_000, 120];

/**
 * Maximum number of connections of a device; one more replaces the least recently used one, whose client must
 * start again.
 */
const maxPerDevice = 16;

/** Maximum number of different required states of the rooms of one connection over its life. */
const maxStates = 256;

/** What is known of a connection's row on disk. */
interface OnDisk {
  readonly states: string[];
}

/** The connections of all devices: on disk, and in memory while they are used. */
export class Connections {
  readonly #deps: ConnectionsDeps;
  readonly #cache: Cache<string, Connection>;
  readonly #loading = new LoadOnce<string, Connection | undefined>();
  /** Connections without an entry have not been written yet. */
  readonly #onDisk = new WeakMap<Connection, OnDisk>();

  constructor(deps: ConnectionsDeps) {
    this.#deps = deps;
    this.#cache = deps.caches.create('sliding_sync_connections', {
      maxBytes,
      sizeOf: ({ rooms }) => connectionBytes + roomBytes * rooms.size,
    });
  }

  /**
   * Returns a new connection; it replaces the connection of the same name when it is saved for the first
   * time.
   */
  begin(address: ConnectionAddress): Connection {
    const id = Buffer.from(this.#deps.randomness.bytes(6)).readUIntBE(0, 6);
    const known = { generation: 0, newest: 0, rooms: new Map(), unreceived: new Set<number>() };
    return new Connection(id, address, known);
  }

  /**
   * Returns the connection of a client that comes with a position.
   * @throws MatrixError M_UNKNOWN_POS
   */
  async find(address: ConnectionAddress, position: ConnectionPosition): Promise<Connection> {
    const key = keyOf(address);
    const load = () => this.#load(address, position);
    const connection = this.#cache.get(key) ?? (await this.#loading.run(key, load));
    if (connection?.id !== position.connection || !connection.accept(position.generation)) throw unknownPos();
    return connection;
  }

  /**
   * Begins the next generation of a connection, with the data that an answer sends.
   * @returns its number, after its changes are on disk if there are any
   */
  async save(connection: Connection, changes: SentChanges): Promise<number> {
    const { generation, toWrite } = connection.next(changes);
    const known = this.#onDisk.get(connection);
    if (known && toWrite.size === 0) return generation;
    const states = statesWith(known?.states ?? [nothingSent.state], toWrite);
    const { id, address } = connection;
    const now = this.#deps.clock.now();
    const floor = connection.generation;
    const outdated = connection.takeOutdated();
    const gone = await this.#deps.database.transaction<SlidingSyncTables, string[]>(async (writer) => {
      const bound = { kept: maxPerDevice - 1, now };
      const names = known ? [] : await replaceConnection(writer, id, address, bound);
      await writeGeneration(writer, { id, floor, states }, { generation, changes: toWrite, outdated, now });
      return names;
    });
    for (const name of gone) this.#cache.delete(keyOf({ ...address, name }));
    this.#onDisk.set(connection, { states });
    this.#cache.set(keyOf(address), connection);
    return generation;
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
    this.#onDisk.set(connection, { states: [...stored.states] });
    this.#cache.set(keyOf(address), connection);
    return connection;
  }
}

const keyOf = ({ userId, deviceId, name }: ConnectionAddress) => JSON.stringify([userId, deviceId, name]);

/** @throws MatrixError M_UNKNOWN_POS when a client has asked for too many different states */
function statesWith(known: readonly string[], changes: SentChanges): string[] {
  const states = new Set(known);
  for (const sent of changes.values()) if (sent) states.add(sent.state);
  if (states.size > maxStates) throw unknownPos();
  return [...states];
}
