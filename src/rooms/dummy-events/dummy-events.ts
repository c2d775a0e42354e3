import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import {
  dummyEventType,
  MatrixError,
  PowerLevels,
  type RoomEvent,
  serverOfUser,
} from '../../protocol/index.ts';
import type { RoomHead, RoomWriter } from '../../room-engine/index.ts';

export interface DummyEventsDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly log: Logger;
  readonly engine: RoomWriter;
  readonly serverName: string;
  /** `dummy_events_threshold`: in rooms with at least this many forward extremities, dummy events are sent. */
  readonly threshold: number;
}

const job = 'rooms/dummy-events';

/** Milliseconds before dummy events are sent. An ordinary event in the meantime merges the extremities without them. */
const delay = 30_000;

/**
 * Milliseconds before the next attempt in a room where no dummy event could be sent, or where dummy events
 * merged no extremities.
 */
const pause = 3_600_000;

/** Maximum number of rooms whose pauses are remembered. */
const maxPausedRooms = 10_000;

/** Maximum number of dummy events that one job, or one call of `merge`, sends to a room. */
const maxEvents = 10;

/**
 * Merges forward extremities with dummy events when a room has too many (`dummy_events_threshold`), because an event
 * with several previous events requires state resolution. The sender is a local user who may send to the room.
 */
export class DummyEvents {
  readonly #deps: DummyEventsDeps;
  readonly #scheduled = new Set<string>();
  /** End of the pause by room id, in milliseconds since the epoch. */
  readonly #pausedUntil: Cache<string, number>;

  /** Registers the job and follows the stream of rooms; the constructor must be called before jobs are started. */
  constructor(deps: DummyEventsDeps) {
    this.#deps = deps;
    this.#pausedUntil = deps.caches.create('dummy_event_pauses', {
      size: maxPausedRooms,
      isExpired: (until) => until <= deps.clock.now(),
    });
    const { jobs, engine } = deps;
    jobs.register<string>(job, { run: ({ payload: roomId }) => this.#mergeExtremities(roomId), parallel: 1 });
    engine.stream.subscribe(({ roomId }) => {
      if (this.#hasTooMany(engine.heads.peek(roomId))) this.#schedule(roomId);
    });
  }

  /**
   * Merges the forward extremities of a room, also below the threshold.
   * @returns how many extremities fewer the room has afterwards
   */
  async merge(roomId: string): Promise<number> {
    const { engine } = this.#deps;
    const count = async () => (await engine.heads.get(roomId))?.extremities.length ?? 0;
    const countBefore = await count();
    for (let [sent, before] = [0, countBefore]; sent < maxEvents && before > 1; sent++) {
      const head = await engine.heads.get(roomId);
      if (!head || !(await this.#send(head))) break;
      const remaining = await count();
      if (remaining >= before) break;
      before = remaining;
    }
    return countBefore - (await count());
  }

  /** Whether the room has at least `threshold` forward extremities, and at least two, so that an event merges them. */
  #hasTooMany(head: RoomHead | undefined): head is RoomHead {
    return (
      head !== undefined && head.extremities.length >= this.#deps.threshold && head.extremities.length > 1
    );
  }

  #schedule(roomId: string): void {
    const { database, jobs, clock, log } = this.#deps;
    if (this.#scheduled.has(roomId) || (this.#pausedUntil.get(roomId) ?? 0) > clock.now()) return;
    this.#scheduled.add(roomId);
    const request = { kind: job, key: roomId, payload: roomId, runAt: clock.now() + delay };
    // On failure, the next event in the room schedules it again.
    void database
      .transaction((writer) => jobs.schedule(writer, request))
      .catch((error: unknown) => {
        this.#scheduled.delete(roomId);
        log.warn({ err: error, roomId }, 'Failed to schedule the merge of forward extremities');
      });
  }

  async #mergeExtremities(roomId: string): Promise<void> {
    const { engine, clock } = this.#deps;
    this.#scheduled.delete(roomId);
    for (let sent = 0; sent < maxEvents; sent++) {
      const head = await engine.heads.get(roomId);
      if (!this.#hasTooMany(head)) return;
      const before = head.extremities.length;
      const isSent = await this.#send(head);
      const remaining = (await engine.heads.get(roomId))?.extremities.length ?? 0;
      if (isSent && remaining < before) continue;
      this.#pausedUntil.set(roomId, clock.now() + pause);
      return;
    }
  }

  async #send(head: RoomHead): Promise<boolean> {
    const sender = await this.#sender(head);
    if (sender === undefined) return false;
    try {
      await this.#deps.engine.timeline.append(head.roomId, { type: dummyEventType, sender, content: {} });
      return true;
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      return false;
    }
  }

  /** Returns a joined local user whose power level allows the dummy event. */
  async #sender(head: RoomHead): Promise<string | undefined> {
    const { serverName, engine } = this.#deps;
    const currentEvent = async (type: string): Promise<RoomEvent | undefined> => {
      const entry = head.entry(type, '');
      return entry && (await engine.events.get(entry.nid))?.event;
    };
    const levels = new PowerLevels(
      await currentEvent('m.room.create'),
      await currentEvent('m.room.power_levels'),
    );
    const required = levels.requiredToSend(dummyEventType, false);
    for (const [userId, membership] of head.members) {
      if (membership !== 'join' || serverOfUser(userId) !== serverName) continue;
      if (levels.ofUser(userId) >= required) return userId;
    }
    return undefined;
  }
}
