import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { Follower, type StreamReader } from '../../kernel/streams/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { RoomReader, StateChange } from '../../room-engine/index.ts';
import { RedactedState } from '../redacted-state.ts';
import type { DirectoryTables } from '../tables.ts';
import { detailRoom, isDescriptive, type RoomDetails } from './room-description.ts';
import { type ServerChanges, serverChanges, writeServerChanges } from './room-servers.ts';
import { deleteRoomStats, writeRoomStats } from './store.ts';

export interface RoomStatsDeps {
  readonly engine: RoomReader;
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly log: Logger;
  readonly serverName: string;
}

/** Maximum number of rooms that one transaction writes. */
const roomsPerTransaction = 50;

/** Maximum number of servers of one room whose changed members are collected; above it, all servers are compared. */
const maxChangedServers = 100;

/** The servers whose members in a room have changed; `all` when any may have. */
type ChangedServers = Set<string> | 'all';

/**
 * Updates one row per room, so that room lists need not read the state of each. Changes during a write are
 * combined: a busy room costs one row at a time.
 */
export class RoomStats {
  readonly #deps: RoomStatsDeps;
  readonly #follower: Follower;
  /**
   * A position on the stream: later facts are collected in `#changed`, earlier ones must be read from the
   * database.
   */
  readonly #notedFrom: number;
  readonly #redacted: RedactedState;
  /** Writes the rows of one batch of rooms at a time; all tasks have one key. */
  readonly #writing = new KeyedMutex();
  /** The changed servers of rooms whose rows are not written again yet, by room id. */
  #changed = new Map<string, ChangedServers>();

  constructor(deps: RoomStatsDeps) {
    this.#deps = deps;
    this.#notedFrom = deps.streams.current;
    this.#redacted = new RedactedState(deps.engine);
    deps.engine.stream.subscribe(({ roomId, stateChanges }) => {
      if (stateChanges.some(({ type }) => isDescriptive(type))) this.#add(roomId, serversOf(stateChanges));
    });
    this.#follower = new Follower(deps, {
      name: 'directory/room-stats',
      startAt: 0,
      follow: (after) => this.#follow(after),
    });
  }

  start(): Promise<void> {
    return this.#follower.start();
  }

  stop(): Promise<void> {
    return this.#follower.stop();
  }

  /** Resolves when the rows include all facts until now, or after a timeout. */
  caughtUp(): Promise<void> {
    return this.#follower.caughtUpSoon();
  }

  async #follow(after: number): Promise<void> {
    const changed = this.#changed;
    this.#changed = new Map();
    try {
      if (after < this.#notedFrom) {
        const { events } = this.#deps.engine;
        for (const roomId of await events.roomsChangedBetween(after, this.#notedFrom))
          changed.set(roomId, 'all');
      }
      for (const { event } of await this.#redacted.take()) {
        if (isDescriptive(event.type)) changed.set(event.roomId, 'all');
      }
      const rooms = [...changed];
      for (let start = 0; start < rooms.length; start += roomsPerTransaction) {
        await this.#write(new Map(rooms.slice(start, start + roomsPerTransaction)));
      }
    } catch (error) {
      for (const [roomId, servers] of changed) this.#add(roomId, servers);
      throw error;
    }
  }

  /** Writes the rows of rooms again, and deletes those of rooms that this server does not know. */
  rewrite(roomIds: readonly string[]): Promise<void> {
    return this.#write(new Map(roomIds.map((roomId) => [roomId, 'all'])));
  }

  #add(roomId: string, servers: ChangedServers): void {
    const before = this.#changed.get(roomId) ?? new Set();
    const all = servers === 'all' || before === 'all' ? 'all' : before.union(servers);
    this.#changed.set(roomId, all === 'all' || all.size > maxChangedServers ? 'all' : all);
  }

  /**
   * Writes the rows of rooms, one call at a time, so that no write stores older details than the one before.
   */
  #write(rooms: ReadonlyMap<string, ChangedServers>): Promise<void> {
    return this.#writing.run('', () => this.#writeRows(rooms));
  }

  async #writeRows(rooms: ReadonlyMap<string, ChangedServers>): Promise<void> {
    const { engine, database, serverName } = this.#deps;
    const found = new Map<string, (ServerChanges & { readonly details: RoomDetails }) | undefined>();
    for (const [roomId, changed] of rooms) {
      const head = await engine.heads.get(roomId);
      const details = head && (await detailRoom(engine, head, serverName));
      const servers = head && (await serverChanges(database, head, changed === 'all' ? undefined : changed));
      found.set(roomId, details && servers && { details, ...servers });
    }
    await database.transaction<DirectoryTables, void>(async (writer) => {
      for (const [roomId, room] of found) {
        if (room) {
          await writeRoomStats(writer, room.details);
          await writeServerChanges(writer, roomId, room);
        } else await deleteRoomStats(writer, roomId);
      }
    });
  }
}

/** Returns the servers whose members change. */
function serversOf(changes: readonly StateChange[]): Set<string> {
  const members = changes.filter(({ type }) => type === 'm.room.member');
  return new Set(members.map(({ stateKey }) => serverOfUser(stateKey)));
}
