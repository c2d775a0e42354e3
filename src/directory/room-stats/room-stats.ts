import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { Follower, type StreamReader } from '../../kernel/streams/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import { RedactedState } from '../redacted-state.ts';
import type { DirectoryTables } from '../tables.ts';
import { detailRoom, isDescriptive, type RoomDetails } from './room-description.ts';
import { deleteRoomStats, writeRoomStats } from './store.ts';

export interface RoomStatsDeps {
  readonly engine: RoomReader;
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly log: Logger;
  readonly serverName: string;
}

/** How many rooms are written in one transaction. */
const roomsAtOnce = 50;

/**
 * Keeps a row for each room, so that lists of rooms need not look at the state of each. Changes that come while the
 * last ones are being written are written together: a busy room costs one row at a time.
 */
export class RoomStats {
  readonly #deps: RoomStatsDeps;
  readonly #follower: Follower;
  /** Facts after this position have been noted in `#changed`; earlier ones must be looked up. */
  readonly #notedFrom: number;
  readonly #redacted: RedactedState;
  #changed = new Set<string>();
  #started = false;

  constructor(deps: RoomStatsDeps) {
    this.#deps = deps;
    this.#notedFrom = deps.streams.current;
    this.#redacted = new RedactedState(deps.engine);
    deps.engine.stream.subscribe(({ roomId, stateChanges }) => {
      if (stateChanges.some(({ type }) => isDescriptive(type))) this.#changed.add(roomId);
    });
    this.#follower = new Follower(deps, {
      name: 'directory/room-stats',
      startAt: 0,
      follow: (after) => this.#follow(after),
    });
  }

  async start(): Promise<void> {
    await this.#follower.start();
    this.#started = true;
  }

  stop(): Promise<void> {
    return this.#follower.stop();
  }

  /** Resolves when the rows tell of everything that has happened until now, or can not be had in time. */
  async caughtUp(): Promise<void> {
    if (this.#started) await this.#follower.caughtUpSoon();
  }

  async #follow(after: number): Promise<void> {
    const changed = this.#changed;
    this.#changed = new Set();
    try {
      if (after < this.#notedFrom) {
        const { events } = this.#deps.engine;
        for (const roomId of await events.roomsChangedBetween(after, this.#notedFrom)) changed.add(roomId);
      }
      for (const { event } of await this.#redacted.take()) {
        if (isDescriptive(event.type)) changed.add(event.roomId);
      }
      const rooms = [...changed];
      for (let start = 0; start < rooms.length; start += roomsAtOnce) {
        await this.#write(rooms.slice(start, start + roomsAtOnce));
      }
    } catch (error) {
      for (const roomId of changed) this.#changed.add(roomId);
      throw error;
    }
  }

  async #write(roomIds: readonly string[]): Promise<void> {
    const { engine, database, serverName } = this.#deps;
    const found = new Map<string, RoomDetails | undefined>();
    for (const roomId of roomIds) {
      const head = await engine.heads.get(roomId);
      found.set(roomId, head && (await detailRoom(engine, head, serverName)));
    }
    await database.transaction<DirectoryTables, void>(async (writer) => {
      for (const [roomId, details] of found) {
        if (details) await writeRoomStats(writer, details);
        else await deleteRoomStats(writer, roomId);
      }
    });
  }
}
