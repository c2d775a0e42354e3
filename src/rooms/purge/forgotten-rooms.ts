import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter, Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { PurgedRoom } from '../../kernel/slices/index.ts';
import type { RoomWriter } from '../../room-engine/index.ts';
import type { RoomPurge } from './room-purge.ts';
import * as store from './store.ts';

export interface ForgottenRoomsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly log: Logger;
  readonly engine: RoomWriter;
  readonly purge: RoomPurge;
  readonly serverName: string;
  /** `forgotten_room_retention_period` in milliseconds; null: forgotten rooms are not deleted. */
  readonly period: number | null;
}

const job = 'rooms/forgotten';

/** Interval in milliseconds of the search for rooms that were forgotten while the option was off. */
const searchInterval = 24 * 3_600_000;

/** Maximum number of rooms that are read in one query. */
const roomsAtOnce = 200;

/**
 * Deletes rooms that all local users have forgotten, when the retention period has passed. The period starts again
 * whenever a user forgets the room.
 */
export class ForgottenRooms {
  readonly #deps: ForgottenRoomsDeps;

  /** Registers the jobs; the constructor must be called before jobs are started. */
  constructor(deps: ForgottenRoomsDeps) {
    this.#deps = deps;
    const { jobs, engine, period } = deps;
    jobs.register<{ roomId: string; roomNid: number }>(job, {
      run: ({ payload, signal }) => this.#purgeIfForgotten(payload, signal),
      parallel: 1,
    });
    jobs.every('rooms/find-forgotten', searchInterval, {
      run: ({ signal }) => this.#scheduleForgotten(signal),
    });
    if (period !== null) engine.userRooms.onForget((writer, room) => this.#schedule(writer, room, true));
  }

  #schedule(writer: AnyWriter, { roomId, roomNid }: PurgedRoom, replace: boolean): Promise<void> {
    const { jobs, clock, period } = this.#deps;
    const runAt = clock.now() + (period ?? 0);
    return jobs.schedule(writer, { kind: job, key: roomId, payload: { roomId, roomNid }, runAt, replace });
  }

  async #purgeIfForgotten(room: PurgedRoom, signal: AbortSignal): Promise<void> {
    const { purge, database, serverName, period, log } = this.#deps;
    if (period === null) return;
    const mayDelete = async () => !(await store.isRemembered(database, room, serverName));
    const isPurged = await purge.purge(room, mayDelete, signal);
    if (isPurged) log.info({ roomId: room.roomId }, 'Deleted a room that all local users have forgotten');
  }

  /** Schedules rooms that were forgotten while the option was off; their period starts now. */
  async #scheduleForgotten(signal: AbortSignal): Promise<void> {
    const { database, serverName, period } = this.#deps;
    if (period === null) return;
    for (let after = 0; ; ) {
      signal.throwIfAborted();
      const rooms = await store.forgottenRooms(database, after, roomsAtOnce);
      for (const room of rooms) {
        if (await store.isRemembered(database, room, serverName)) continue;
        await database.transaction((writer) => this.#schedule(writer, room, false));
      }
      after = rooms.at(-1)?.roomNid ?? after;
      if (rooms.length < roomsAtOnce) return;
    }
  }
}
