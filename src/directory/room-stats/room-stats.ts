import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { Follower, type StreamReader } from '../../kernel/streams/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { RoomReader, StateChange } from '../../room-engine/index.ts';
import { RedactedState } from '../redacted-state.ts';
import type { DirectoryTables } from '../tables.ts';
import { changedListedRooms, listedRoom, writeListedRooms } from './listed-rooms.ts';
import { describeRoomInDetail, isDescriptive } from './room-description.ts';
import { type ServerChanges, serverChanges, writeServerChanges } from './room-servers.ts';
import { deleteRoomStats, type RoomRow, roomStatsRow, writeRoomStats } from './store.ts';

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

/**
 * Maximum number of servers with changed members that are collected for one room. Above it, all servers of the room are
 * compared.
 */
const maxChangedServers = 100;

/** What has changed in a room since its rows were written. */
interface RoomChange {
  /** The servers whose members have changed; `all` when members of any server may have changed. */
  readonly servers: ReadonlySet<string> | 'all';
  /** Whether state other than memberships may have changed, for instance the name. */
  readonly hasNewDescription: boolean;
}

const anyChange: RoomChange = { servers: 'all', hasNewDescription: true };

/**
 * Updates the rows of each room in `room_stats`, `listed_rooms` and `room_servers`, so that room lists need not read the
 * state of each room. Changes of a room during a write are combined, so that a busy room is written once for many
 * changes.
 */
export class RoomStats {
  readonly #deps: RoomStatsDeps;
  readonly #follower: Follower;
  /**
   * Position of the stream when `start` was called. Later changes of rooms are collected in `#changed`; earlier changes
   * must be read from the database.
   */
  #collectedAfter = 0;
  readonly #redacted: RedactedState;
  /** Writes the rows of one batch of rooms at a time; all tasks have one key. */
  readonly #writing = new KeyedMutex();
  /** The changes of rooms whose rows are not written again yet, by room id. */
  #changed = new Map<string, RoomChange>();

  constructor(deps: RoomStatsDeps) {
    this.#deps = deps;
    this.#redacted = new RedactedState(deps.engine);
    this.#follower = new Follower(deps, {
      name: 'directory/room-stats',
      startAt: 0,
      follow: (after) => this.#follow(after),
    });
  }

  /** Starts to collect the changes of rooms, and to write their rows. */
  start(): Promise<void> {
    const { engine, streams } = this.#deps;
    this.#collectedAfter = streams.current;
    this.#redacted.start();
    engine.stream.subscribe(({ roomId, stateChanges }) => {
      if (stateChanges.some(({ type }) => isDescriptive(type))) this.#add(roomId, changeOf(stateChanges));
    });
    return this.#follower.start();
  }

  stop(): Promise<void> {
    return this.#follower.stop();
  }

  /** Resolves when the rows include all facts that were published before the call, or after a timeout. */
  caughtUp(): Promise<void> {
    return this.#follower.caughtUpSoon();
  }

  async #follow(after: number): Promise<void> {
    const changed = this.#changed;
    this.#changed = new Map();
    try {
      if (after < this.#collectedAfter) {
        const { events } = this.#deps.engine;
        for (const roomId of await events.roomsChangedBetween(after, this.#collectedAfter))
          changed.set(roomId, anyChange);
      }
      for (const { event } of await this.#redacted.take()) {
        if (isDescriptive(event.type)) changed.set(event.roomId, anyChange);
      }
      const rooms = [...changed];
      for (let start = 0; start < rooms.length; start += roomsPerTransaction) {
        await this.#write(new Map(rooms.slice(start, start + roomsPerTransaction)));
      }
    } catch (error) {
      for (const [roomId, change] of changed) this.#add(roomId, change);
      throw error;
    }
  }

  /** Writes the rows of rooms again, and deletes the rows of rooms that this server does not know. */
  rewrite(roomIds: readonly string[]): Promise<void> {
    return this.#write(new Map(roomIds.map((roomId) => [roomId, anyChange])));
  }

  #add(roomId: string, change: RoomChange): void {
    const before = this.#changed.get(roomId);
    this.#changed.set(roomId, before ? combined(before, change) : change);
  }

  /**
   * Writes the rows of rooms, one call at a time, so that no write stores older details than the one before.
   */
  #write(rooms: ReadonlyMap<string, RoomChange>): Promise<void> {
    return this.#writing.run('', () => this.#writeRows(rooms));
  }

  async #writeRows(rooms: ReadonlyMap<string, RoomChange>): Promise<void> {
    const { engine, database, serverName } = this.#deps;
    const newRows = new Map<string, (ServerChanges & { readonly row: RoomRow }) | undefined>();
    const described: RoomRow[] = [];
    for (const [roomId, { servers: changed, hasNewDescription }] of rooms) {
      const head = await engine.heads.get(roomId);
      const row = head && roomStatsRow(await describeRoomInDetail(engine, head, serverName));
      const servers = head && (await serverChanges(database, head, changed === 'all' ? undefined : changed));
      newRows.set(roomId, row && servers && { row, ...servers });
      if (row && hasNewDescription) described.push(row);
    }
    const listed = await changedListedRooms(database, described.map(listedRoom));
    await database.transaction<DirectoryTables, void>(async (writer) => {
      for (const [roomId, room] of newRows) {
        if (room) {
          await writeRoomStats(writer, room.row);
          await writeServerChanges(writer, roomId, room);
        } else await deleteRoomStats(writer, roomId);
      }
      await writeListedRooms(writer, listed);
    });
  }
}

function changeOf(changes: readonly StateChange[]): RoomChange {
  const members = changes.filter(({ type }) => type === 'm.room.member');
  return {
    servers: boundedServers(new Set(members.map(({ stateKey }) => serverOfUser(stateKey)))),
    hasNewDescription: changes.some(({ type }) => type !== 'm.room.member' && isDescriptive(type)),
  };
}

function combined(before: RoomChange, change: RoomChange): RoomChange {
  const changesAllServers = before.servers === 'all' || change.servers === 'all';
  return {
    servers: changesAllServers ? 'all' : boundedServers(before.servers.union(change.servers)),
    hasNewDescription: before.hasNewDescription || change.hasNewDescription,
  };
}

const boundedServers = (servers: ReadonlySet<string>): RoomChange['servers'] =>
  servers.size > maxChangedServers ? 'all' : servers;
