import { sql } from 'kysely';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import {
  type Job,
  type JobAttempt,
  type JobStatus,
  type Jobs,
  jobFailure,
  jobStatus,
} from '../../kernel/jobs/index.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { RoomTables, StoredEvent } from '../../room-engine/index.ts';
import type { Rooms } from '../rooms.ts';

/** Which events of a user are redacted, and how. */
export interface UserRedactionOrder {
  readonly userId: string;
  /** The local user who sends the redactions. */
  readonly redactor: string;
  readonly roomIds: readonly string[];
  readonly reason: string | null;
  /** Maximum number of the newest events in each room that are considered; events that are redacted already count. */
  readonly limit: number;
  /** Only events that were sent at this time or later, in milliseconds since the epoch; null: no bound. */
  readonly sentFrom: number | null;
  /** Only events that were sent at this time or earlier, in milliseconds since the epoch; null: no bound. */
  readonly sentUntil: number | null;
}

export interface UserRedactionStatus {
  readonly status: JobStatus;
  readonly error: string | undefined;
  /** Error messages by the ids of the events that could not be redacted. */
  readonly failed: Readonly<Record<string, string>>;
}

export interface UserRedactionDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly randomness: Randomness;
  readonly rooms: Pick<Rooms, 'engine' | 'sending'>;
}

const job = 'rooms/redact-user';

/** The status of a finished job can be read for this many milliseconds. */
const statusLifetime = 7 * 24 * 3_600_000;

/** A redaction of a user counts as failed after this number of failed attempts. */
const maxAttempts = 5;

/** Maximum number of events that one query reads, and that are redacted between two writes of the progress. */
const eventsAtOnce = 100;

/**
 * Types of message events that are redacted. Joins are redacted, too: their content has the name and avatar of the
 * user.
 */
const messageTypes: ReadonlySet<string> = new Set(['m.room.message', 'm.room.encrypted']);

/**
 * The payload of the job: the order and its progress. TypeScript accepts the mapped type of an interface as a
 * `JsonObject`, but not the interface.
 */
type Progress = {
  readonly [Name in keyof UserRedactionOrder]: UserRedactionOrder[Name];
} & {
  /** Position of the last considered event in the first room of `roomIds`; null before the first event. */
  readonly before: number | null;
  /** Number of considered events in the first room of `roomIds`. */
  readonly considered: number;
  /**
   * Numbers of events in all rooms, including events that were redacted before and failures; null before they are
   * counted.
   */
  readonly counts: { readonly considered: number; readonly total: number } | null;
  readonly failed: Readonly<Record<string, string>>;
};

/**
 * Redacts the messages and joins of a user on behalf of administrators. Each such order is a job, so that it continues
 * after a restart; events that are redacted already are skipped.
 */
export class UserRedaction {
  readonly #deps: UserRedactionDeps;

  /** Registers the job; the constructor must be called before jobs are started. */
  constructor(deps: UserRedactionDeps) {
    this.#deps = deps;
    deps.jobs.register<Progress>(job, {
      run: (attempt) => this.#run(attempt),
      parallel: 1,
      maxAttempts,
      keep: statusLifetime,
      progressOf: ({ counts }) =>
        counts
          ? { done: counts.considered, total: Math.max(counts.considered, counts.total) }
          : { done: 0, total: null },
    });
  }

  /** Schedules the redaction of a user's events. @returns the id of the redaction */
  async schedule(order: UserRedactionOrder): Promise<string> {
    const { database, jobs, clock, randomness } = this.#deps;
    const key = randomLetters(randomness, 16);
    const payload: Progress = { ...order, before: null, considered: 0, counts: null, failed: {} };
    await database.transaction((writer) =>
      jobs.schedule(writer, { kind: job, key, payload, runAt: clock.now() }),
    );
    return key;
  }

  /** Returns the status of a redaction; `undefined` for unknown ids and a week after it was finished. */
  async status(id: string): Promise<UserRedactionStatus | undefined> {
    const [foundJob] = await this.#deps.jobs.list({ kind: job, key: id, limit: 1 });
    return foundJob && statusOf(foundJob);
  }

  async #run({ payload, signal, progress }: JobAttempt<Progress>): Promise<Progress> {
    let redaction = payload;
    if (!redaction.counts) {
      const total = await this.#count(redaction, signal);
      redaction = { ...redaction, counts: { considered: 0, total } };
      await progress(redaction);
    }
    for (let roomId = redaction.roomIds[0]; roomId !== undefined; roomId = redaction.roomIds[0]) {
      const events = await this.#events(redaction, roomId);
      for (const stored of events) {
        signal.throwIfAborted();
        redaction = await this.#redact(redaction, roomId, stored);
      }
      // That all events of a room are processed is not stored, so that fewer writes repeat the list of rooms: after a
      // restart, the room is read again.
      if (events.length > 0) await progress(redaction);
      else redaction = { ...redaction, roomIds: redaction.roomIds.slice(1), before: null, considered: 0 };
    }
    return redaction;
  }

  /** Counts the events to consider in all rooms. */
  async #count(redaction: Progress, signal: AbortSignal): Promise<number> {
    let total = 0;
    for (const roomId of redaction.roomIds) {
      for (let progress = redaction; ; ) {
        signal.throwIfAborted();
        const events = await this.#events(progress, roomId);
        if (events.length === 0) break;
        total += events.length;
        const before = events.at(-1)!.stream ?? null;
        progress = { ...progress, before, considered: progress.considered + events.length };
      }
    }
    return total;
  }

  async #redact(
    redaction: Progress,
    roomId: string,
    { event, stream, redactedBy }: StoredEvent,
  ): Promise<Progress> {
    const { sending } = this.#deps.rooms;
    const { counts } = redaction;
    const next = {
      ...redaction,
      before: stream ?? null,
      considered: redaction.considered + 1,
      counts: counts && { ...counts, considered: counts.considered + 1 },
    };
    if (redactedBy !== undefined) return next;
    const content = redaction.reason === null ? {} : { reason: redaction.reason };
    const sender = { userId: redaction.redactor, deviceId: undefined, isServerTask: true };
    try {
      await sending.redact(sender, roomId, event.eventId, content);
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      return { ...next, failed: { ...next.failed, [event.eventId]: error.message } };
    }
    return next;
  }

  /** Returns the next events of a user in a room to redact, newest first. */
  async #events(redaction: Progress, roomId: string): Promise<StoredEvent[]> {
    const { database, rooms } = this.#deps;
    const head = await rooms.engine.heads.get(roomId);
    const maxEvents = Math.min(eventsAtOnce, redaction.limit - redaction.considered);
    if (!head || maxEvents <= 0) return [];
    const events: StoredEvent[] = [];
    for (let before = redaction.before; ; ) {
      let query = database
        .scanner<RoomTables>()
        .selectFrom('events')
        .select(['nid', 'stream'])
        .where('room_nid', '=', head.roomNid)
        .where('stream', 'is not', null)
        .where(sql<boolean>`json like ${senderPattern(redaction.userId)} escape '\\'`)
        .orderBy('stream', 'desc')
        .limit(eventsAtOnce);
      if (before !== null) query = query.where('stream', '<', before);
      const rows = await query.execute();
      const stored = await rooms.engine.events.getMany(rows.map(({ nid }) => nid));
      for (const { nid } of rows) {
        const event = stored.get(nid);
        if (event && isOfUser(event, redaction.userId) && isInTime(event, redaction)) events.push(event);
        if (events.length === maxEvents) return events;
      }
      before = rows.at(-1)?.stream ?? null;
      if (before === null || rows.length < eventsAtOnce) return events;
    }
  }
}

/**
 * Returns an SQL pattern that matches all events of a sender, and other events whose content has a `sender` field with
 * the same value.
 */
const senderPattern = (userId: string): string =>
  `%"sender":${JSON.stringify(userId).replaceAll(/[\\%_]/g, '\\$&')}%`;

function isOfUser({ event, rejected, softFailed }: StoredEvent, userId: string): boolean {
  if (event.sender !== userId || rejected || softFailed) return false;
  if (event.stateKey === undefined) return messageTypes.has(event.type);
  return event.type === 'm.room.member' && event.content['membership'] === 'join';
}

function isInTime({ event }: StoredEvent, { sentFrom, sentUntil }: UserRedactionOrder): boolean {
  const ts = event.originServerTs;
  return ts >= (sentFrom ?? Number.NEGATIVE_INFINITY) && ts <= (sentUntil ?? Number.POSITIVE_INFINITY);
}

function statusOf(found: Job): UserRedactionStatus {
  const { failed } = (found.result ?? found.payload) as Progress;
  return { status: jobStatus(found), error: jobFailure(found), failed };
}
