import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import {
  type Job,
  type JobProgress,
  type JobStatus,
  type Jobs,
  jobFailure,
  jobStatus,
} from '../../kernel/jobs/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import { type Randomness, randomLetters } from '../../kernel/randomness.ts';
import { badJson, invalidParam, MatrixError, notFound } from '../../protocol/index.ts';
import type { RoomHead, RoomWriter, StoredEvent } from '../../room-engine/index.ts';
import type { DeletionProgress, HistoryDeletion } from './history-deletion.ts';
import * as store from './history-store.ts';

/** Selects the messages of a room to delete. State events are kept. */
export interface HistoryPurgeRequest {
  /** Messages before the event with this id are deleted. */
  readonly eventId?: string | undefined;
  /**
   * Without `eventId`: messages before the newest event that was sent before this time, in milliseconds since the epoch,
   * are deleted.
   */
  readonly ts?: number | undefined;
  /** Whether messages of local users are deleted as well: possibly no other server has them. */
  readonly deleteLocalEvents: boolean;
}

export interface HistoryPurgeStatus {
  /** Never `scheduled`: a purge is `active` from its request on. */
  readonly status: JobStatus;
  readonly error: string | undefined;
  /** How far the purge is, in depths of events. */
  readonly progress: JobProgress;
}

export interface HistoryPurgeDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly randomness: Randomness;
  readonly engine: RoomWriter;
  readonly deletion: HistoryDeletion;
}

const job = 'rooms/purge-history';

/** The status of a finished purge is kept for this many milliseconds. */
const statusLifetime = 7 * 24 * 3_600_000;

/** A purge counts as failed after this number of failed attempts. */
const maxAttempts = 5;

/** Deletes old messages of rooms on behalf of administrators. A purge is a job, so that it continues after a restart. */
export class HistoryPurge {
  readonly #deps: HistoryPurgeDeps;
  /** Checks and schedules one purge of a room at a time, by room id. */
  readonly #scheduling = new KeyedMutex();

  /** Registers the job; the constructor must be called before jobs are started. */
  constructor(deps: HistoryPurgeDeps) {
    this.#deps = deps;
    deps.jobs.register<DeletionProgress>(job, {
      run: (attempt) => deps.deletion.run(attempt),
      parallel: 1,
      maxAttempts,
      keep: statusLifetime,
      progressOf: depthsDone,
    });
  }

  /**
   * Schedules a purge.
   * @returns the id of the purge
   * @throws MatrixError 404 for an unknown event and when no event was sent before `ts`, 400 for an event of another
   * room, for a request without a bound, and while another purge of the room is running
   */
  schedule(head: RoomHead, request: HistoryPurgeRequest): Promise<string> {
    return this.#scheduling.run(head.roomId, () => this.#schedule(head, request));
  }

  /** Returns the status of a purge; `undefined` for unknown ids and a week after the purge finished. */
  async status(id: string): Promise<HistoryPurgeStatus | undefined> {
    const [purgeJob] = await this.#deps.jobs.list({ kind: job, key: id, limit: 1 });
    return purgeJob && statusOf(purgeJob);
  }

  async #schedule(head: RoomHead, request: HistoryPurgeRequest): Promise<string> {
    const { database, jobs, clock, randomness } = this.#deps;
    const { roomId, roomNid } = head;
    const { depth } = (await this.#firstKeptEvent(head, request)).event;
    if (await this.#isUnderWay(roomId))
      throw new MatrixError(400, 'M_UNKNOWN', `The history of ${roomId} is being purged already`);
    const { deleteLocalEvents } = request;
    const payload: DeletionProgress = {
      roomId,
      roomNid,
      depth,
      deleteLocalEvents,
      step: 'timeline',
      after: null,
    };
    const key = randomLetters(randomness, 16);
    await database.transaction((writer) =>
      jobs.schedule(writer, { kind: job, key, payload, runAt: clock.now() }),
    );
    return key;
  }

  async #firstKeptEvent({ roomNid }: RoomHead, { eventId, ts }: HistoryPurgeRequest): Promise<StoredEvent> {
    const { engine, database } = this.#deps;
    if (eventId !== undefined) {
      const stored = eventId.includes('\0') ? undefined : await engine.events.getById(eventId);
      if (!stored) throw notFound('Event not found');
      if (stored.roomNid !== roomNid) throw invalidParam('The event belongs to another room');
      return stored;
    }
    if (ts === undefined) throw badJson('purge_up_to_event_id or purge_up_to_ts must be present');
    const nid = await store.newestBefore(database, roomNid, ts);
    const stored = nid === undefined ? undefined : await engine.events.get(nid);
    if (!stored) throw notFound('No event was sent before purge_up_to_ts');
    return stored;
  }

  async #isUnderWay(roomId: string): Promise<boolean> {
    for (let after = 0; ; ) {
      const page = await this.#deps.jobs.list({ kind: job, after, limit: 100 });
      const isOfRoom = ({ payload, state }: Job) =>
        state === 'waiting' && (payload as DeletionProgress).roomId === roomId;
      if (page.some(isOfRoom)) return true;
      if (page.length < 100) return false;
      after = page.at(-1)?.id ?? after;
    }
  }
}

function statusOf(found: Job): HistoryPurgeStatus {
  const deletion = found.payload as DeletionProgress;
  return {
    status: jobStatus(found, true),
    error: jobFailure(found),
    progress: found.state === 'done' ? { done: deletion.depth, total: deletion.depth } : depthsDone(deletion),
  };
}

/** Returns how many depths the deletion of the timeline has processed: this step takes longest. */
function depthsDone({ depth, step, after }: DeletionProgress): JobProgress {
  return { done: step === 'timeline' ? Math.min(after?.depth ?? 0, depth) : depth, total: depth };
}
