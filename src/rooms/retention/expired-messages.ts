import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter, Database } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { stateMapKey } from '../../protocol/index.ts';
import { type RoomWriter, retentionType, visibleContent } from '../../room-engine/index.ts';
import type { RoomsConfig } from '../config.ts';
import type { DeletionProgress, HistoryDeletion } from '../purge/history-deletion.ts';
import * as store from './store.ts';

export interface ExpiredMessagesDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly log: Logger;
  readonly engine: RoomWriter;
  readonly deletion: HistoryDeletion;
  readonly options: RoomsConfig['retention'];
}

/**
 * An entry of `retention.purge_jobs`: how often rooms are searched for expired messages, and the range of
 * `max_lifetime` of these rooms. All values are in milliseconds.
 */
type PurgeJob = NonNullable<RoomsConfig['retention']['purge_jobs']>[number];

/** Kind of the jobs that search for rooms with expired messages. */
const searchJob = 'rooms/find-expired';

/** Kind of the jobs that delete the expired messages of a room. */
const deletionJob = 'rooms/delete-expired';

/** The default where `retention.purge_jobs` is not configured: all rooms, once a day. */
const daily: PurgeJob = {
  shortest_max_lifetime: null,
  longest_max_lifetime: null,
  interval: 24 * 3_600_000,
};

/** Maximum number of rooms that are read in one query. */
const roomsAtOnce = 200;

/**
 * Deletes messages that have expired by the retention policies of their rooms. Each job of `retention.purge_jobs`
 * searches the rooms whose `max_lifetime` is in its range, and schedules a deletion for each room with expired
 * messages. No messages are deleted in rooms outside of all ranges.
 */
export class ExpiredMessages {
  readonly #deps: ExpiredMessagesDeps;
  readonly #purgeJobs: ReadonlyMap<string, PurgeJob>;

  /** Registers the jobs; the constructor must be called before jobs are started. */
  constructor(deps: ExpiredMessagesDeps) {
    this.#deps = deps;
    const { enabled, purge_jobs: configured } = deps.options;
    const purgeJobs = enabled ? (configured ?? [daily]) : [];
    this.#purgeJobs = new Map(purgeJobs.map((purgeJob) => [keyOf(purgeJob), purgeJob]));
    deps.jobs.register<{ after: number }>(searchJob, {
      run: ({ key, payload, progress, signal }) => this.#search(key ?? '', payload.after, progress, signal),
      parallel: 1,
      maxAttempts: Number.POSITIVE_INFINITY,
    });
    deps.jobs.register<DeletionProgress>(deletionJob, {
      run: async (attempt) => {
        const payload = await this.#limitToExpired(attempt.payload);
        if (payload) await deps.deletion.run({ ...attempt, payload });
      },
      parallel: 1,
    });
  }

  /** Schedules each search that is not scheduled yet, one interval from now. Call it before jobs are started. */
  async start(): Promise<void> {
    if (this.#purgeJobs.size === 0) return;
    await this.#deps.database.transaction(async (writer) => {
      for (const [key, { interval }] of this.#purgeJobs) await this.#schedule(writer, key, interval);
    });
  }

  #schedule(writer: AnyWriter, key: string, interval: number): Promise<void> {
    const { jobs, clock } = this.#deps;
    return jobs.schedule(writer, {
      kind: searchJob,
      key,
      payload: { after: 0 },
      runAt: clock.now() + interval,
    });
  }

  /**
   * Searches all rooms once, and schedules the next search. Does neither if the configuration does not contain this
   * search.
   * @param start nid of the last room that an earlier attempt has searched; 0 at the beginning
   */
  async #search(
    key: string,
    start: number,
    progress: (payload: { after: number }) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const purgeJob = this.#purgeJobs.get(key);
    if (!purgeJob) return;
    const { database, engine } = this.#deps;
    const [policy, create] = await Promise.all(
      [retentionType, 'm.room.create'].map((type) => engine.stateKeys.find(stateMapKey(type, ''))),
    );
    // Rooms without a policy are searched only where the default policy is in the range.
    const onlyWithPolicy = !isInRange(engine.retention.lifetimeBy(undefined), purgeJob);
    for (let after = start; ; ) {
      signal.throwIfAborted();
      const page = { after, limit: roomsAtOnce, onlyWithPolicy };
      const rooms = await store.roomsWithPolicies(database, { policy, create }, page);
      for (const room of rooms) await this.#scheduleDeletion(room, purgeJob);
      after = rooms.at(-1)?.roomNid ?? after;
      if (rooms.length < roomsAtOnce) break;
      await progress({ after });
    }
    await database.transaction((writer) => this.#schedule(writer, key, purgeJob.interval));
  }

  async #scheduleDeletion(room: store.RoomWithPolicy, purgeJob: PurgeJob): Promise<void> {
    const { database, jobs, clock, engine } = this.#deps;
    const { retention, events } = engine;
    const policy = room.policyNid === undefined ? undefined : await events.get(room.policyNid);
    const lifetime = retention.lifetimeBy(policy && visibleContent(policy));
    if (lifetime === undefined || !isInRange(lifetime, purgeJob)) return;
    const sentBefore = clock.now() - retention.capLifetime(lifetime);
    const depths = await store.depthsOfMessages(database, room, sentBefore);
    if (!depths) return;
    const { roomId, roomNid } = room;
    const payload: DeletionProgress = {
      roomId,
      roomNid,
      depth: depths.max + 1,
      sentBefore,
      start: { depth: depths.min - 1, stream: Number.MAX_SAFE_INTEGER },
      deleteLocalEvents: true,
      step: 'timeline',
      after: null,
    };
    await database.transaction((writer) =>
      jobs.schedule(writer, { kind: deletionJob, key: roomId, payload, runAt: clock.now() }),
    );
  }

  /**
   * Limits a deletion to messages that have expired by the current policy of the room, which may have changed since
   * the deletion was scheduled.
   * @returns `undefined` when messages of the room do not expire, or the room is unknown
   */
  async #limitToExpired(deletion: DeletionProgress): Promise<DeletionProgress | undefined> {
    const { engine } = this.#deps;
    const head = await engine.heads.get(deletion.roomId);
    if (!head) return undefined;
    const expiredBefore = await engine.retention.expiredBefore(head);
    if (expiredBefore === Number.NEGATIVE_INFINITY) return undefined;
    return { ...deletion, sentBefore: Math.min(deletion.sentBefore ?? expiredBefore, expiredBefore) };
  }
}

/** Returns the key of the job of a search. It contains the configuration, so that a changed entry is a new search. */
const keyOf = ({ shortest_max_lifetime: shortest, longest_max_lifetime: longest, interval }: PurgeJob) =>
  `${shortest ?? ''}-${longest ?? ''}/${interval}`;

/** Returns whether a lifetime in milliseconds is above the lower bound of a purge job, and at most its upper bound. */
function isInRange(
  lifetime: number | undefined,
  { shortest_max_lifetime: shortest, longest_max_lifetime: longest }: PurgeJob,
): boolean {
  if (lifetime === undefined) return false;
  return (shortest === null || lifetime > shortest) && (longest === null || lifetime <= longest);
}
