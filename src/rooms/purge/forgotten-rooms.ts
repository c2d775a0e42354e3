import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter, Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { RoomWriter } from '../../room-engine/index.ts';
import type { RoomPurge } from './room-purge.ts';
import type { PurgedRoom } from './room-rows.ts';
import * as store from './store.ts';

export interface ForgottenRoomsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly log: Logger;
  readonly engine: RoomWriter;
  readonly purge: RoomPurge;
  readonly serverName: string;
  /** `forgotten_room_retention_period` in milliseconds; null: rooms are kept for good. */
  readonly period: number | null;
}

const job = 'rooms/forgotten';

/** How often rooms are looked for that were forgotten while the option was off, in milliseconds. */
const searchInterval = 24 * 3_600_000;

/** Rooms that are looked at together. */
const roomsAtOnce = 200;

/**
 * Deletes rooms that all local users have forgotten, when they have been forgotten for as long as the operator wants:
 * counted from the last time that somebody forgot the room.
 */
export class ForgottenRooms {
  readonly #deps: ForgottenRoomsDeps;

  constructor(deps: ForgottenRoomsDeps) {
    this.#deps = deps;
  }

  /** Says how the work is done; before jobs are started. */
  register(): void {
    const { jobs, engine, period } = this.#deps;
    jobs.register<{ roomId: string; roomNid: number }>(job, {
      run: ({ payload, signal }) => this.#purgeDue(payload, signal),
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

  async #purgeDue(room: PurgedRoom, signal: AbortSignal): Promise<void> {
    const { purge, database, serverName, period, log } = this.#deps;
    if (period === null) return;
    const mayGo = async () => !(await store.isRemembered(database, room, serverName));
    const isGone = await purge.purge(room, mayGo, signal);
    if (isGone) log.info({ roomId: room.roomId }, 'A room that everybody here had forgotten was deleted');
    else if (signal.aborted) throw new Error('interrupted');
  }

  /** Those that were forgotten when nobody counted are kept for the period from now on. */
  async #scheduleForgotten(signal: AbortSignal): Promise<void> {
    const { database, serverName, period } = this.#deps;
    if (period === null) return;
    for (let after = 0; !signal.aborted; ) {
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
