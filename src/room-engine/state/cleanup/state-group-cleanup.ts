import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import type { JobAttempt, Jobs } from '../../../kernel/jobs/index.ts';
import type { StreamWriter } from '../../../kernel/streams/index.ts';
import type { RoomWriter } from '../../room-writer.ts';
import type { RoomTables } from '../../tables.ts';
import { planCleanup, type Rebase } from './plan.ts';
import * as store from './store.ts';

export interface StateGroupCleanupDeps {
  readonly database: Database;
  /** The database that stores the state groups, if it is not `database`. */
  readonly stateDatabase?: Database;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly jobs: Jobs;
  readonly engine: RoomWriter;
  /** Called with the number of groups that were removed. */
  readonly onRemoved: (count: number) => void;
}

/** A room whose state groups are cleaned up. */
type Room = {
  readonly roomId: string;
  readonly roomNid: number;
};

type Payload = Room & {
  /** The newest group when the cleanup was scheduled: newer groups may belong to events that are not written yet. */
  readonly upTo: number;
};

const job = 'rooms/clean-state-groups';

/**
 * Milliseconds between finding an unused group and removing it: writes of events and reads of states that were running
 * when it was found have ended by then.
 */
const removalDelay = 10 * 60_000;

/** Maximum number of groups whose entries are counted together. */
const groupsAtOnce = 100;
/** Maximum number of entries that one transaction adds or deletes. */
const entriesAtOnce = 1_000;

/**
 * Removes state groups that no event refers to any more after a purge or the completion of a partial state. When
 * exactly one other group is built on an unused group, the changes of the unused group are first merged into that other
 * group (`planCleanup`), in small transactions that leave all states as they are.
 */
export class StateGroupCleanup {
  readonly #deps: StateGroupCleanupDeps;
  readonly #stateDatabase: Database;
  /**
   * Unused groups that the last run found, by `roomNid`. They are in memory only: after a restart they are found again.
   */
  readonly #unusedGroups = new Map<number, ReadonlySet<number>>();

  /** Registers the job; the constructor must be called before jobs are started. */
  constructor(deps: StateGroupCleanupDeps) {
    this.#deps = deps;
    this.#stateDatabase = deps.stateDatabase ?? deps.database;
    deps.jobs.register<Payload>(job, { run: (attempt) => this.#run(attempt), parallel: 1 });
  }

  /**
   * Schedules a cleanup of a room after `removalDelay`. A cleanup that already waits keeps its time and includes the
   * newer groups.
   */
  async schedule({ roomId, roomNid }: Room): Promise<void> {
    const { database, jobs, clock } = this.#deps;
    const payload: Payload = { roomId, roomNid, upTo: await store.newestGroup(this.#stateDatabase, roomNid) };
    const [pendingJob] = await jobs.list({ kind: job, key: roomId, limit: 1 });
    const latest = clock.now() + removalDelay;
    const runAt = pendingJob && !pendingJob.running ? Math.min(pendingJob.runAt, latest) : latest;
    await database.transaction((writer) =>
      jobs.schedule(writer, { kind: job, key: roomId, payload, runAt, replace: true }),
    );
  }

  async #run({ payload, signal }: Pick<JobAttempt<Payload>, 'payload' | 'signal'>): Promise<void> {
    const { database, engine } = this.#deps;
    const { roomId, roomNid, upTo } = payload;
    const head = await engine.heads.get(roomId);
    if (head?.roomNid !== roomNid || head.stateGroup === undefined) return;
    // A room that was joined with partial state is assigned other state groups when its state is complete.
    if (head.isPartial) return this.schedule({ roomId, roomNid });
    // The groups are read before the events, so that no group that is made between the two reads looks unused.
    const groups = await store.readGroups(this.#stateDatabase, roomNid);
    const used = await store.readUsedGroups(database, roomNid);
    const growing = [head.stateGroup, ...head.extremities.flatMap(({ stateGroup }) => stateGroup ?? [])];
    const newest = groups.at(-1)?.id ?? 0;
    const plan = await planCleanup({ groups, used, growing, upTo });
    const foundBefore = this.#unusedGroups.get(roomNid);
    this.#unusedGroups.delete(roomNid);
    const removable = plan.removed.filter((id) => foundBefore?.has(id));
    // Cached chains may contain the groups that are removed next.
    if (removable.length > 0) await this.#dropCachedChains(payload);
    await this.#remove(removable, newest, signal);
    for (const rebase of plan.rebases) {
      signal.throwIfAborted();
      await this.#rebase(rebase);
    }
    if (plan.rebases.length > 0) await this.#dropCachedChains(payload);
    const removableNext = plan.removed.filter((id) => !foundBefore?.has(id));
    for (const { through } of plan.rebases) removableNext.push(...through);
    if (removableNext.length === 0) return;
    await this.schedule(payload);
    this.#unusedGroups.set(roomNid, new Set(removableNext));
  }

  /** Merges the changes of the unused groups `through` into the group `id`, and then links that group to `prevId`. */
  async #rebase({ id, through, prevId }: Rebase): Promise<void> {
    const database = this.#stateDatabase;
    const groupEntries = await store.readDelta(database, id);
    const knownKeys = new Set(groupEntries.map(({ key_nid }) => key_nid));
    for (const unused of through) {
      const entries = (await store.readDelta(database, unused)).filter(
        ({ key_nid }) => !knownKeys.has(key_nid),
      );
      for (let start = 0; start < entries.length; start += entriesAtOnce) {
        const chunk = entries.slice(start, start + entriesAtOnce);
        await database.transaction<RoomTables, void>((writer) => store.addToDelta(writer, id, chunk));
      }
      for (const { key_nid } of entries) knownKeys.add(key_nid);
    }
    await database.transaction<RoomTables, void>((writer) => store.setPredecessor(writer, id, prevId));
  }

  /**
   * Deletes groups, in transactions that each delete a bounded number of entries.
   * @param after id of the newest group when `groups` were found unused: only newer groups may link to a group in
   * `groups`, and a group with such a link is not deleted
   */
  async #remove(groups: readonly number[], after: number, signal: AbortSignal): Promise<void> {
    const database = this.#stateDatabase;
    for (let start = 0; start < groups.length; start += groupsAtOnce) {
      const sizes = await store.deltaSizes(database, groups.slice(start, start + groupsAtOnce));
      for (const ids of batchesOf(sizes)) {
        signal.throwIfAborted();
        for (let remaining = sizes.get(ids[0]!)!; remaining > entriesAtOnce; remaining -= entriesAtOnce)
          await database.transaction<RoomTables, void>((writer) =>
            store.deleteEntries(writer, ids[0]!, after, entriesAtOnce),
          );
        this.#deps.onRemoved(
          await database.transaction<RoomTables, number>((writer) => store.deleteUnused(writer, ids, after)),
        );
      }
    }
  }

  /** Makes all processes drop their cached chains. */
  async #dropCachedChains({ roomId }: Room): Promise<void> {
    const { streams, engine } = this.#deps;
    await streams.write(async (_writer, publish) => publish(engine.removals, { kind: 'rebased', roomId }));
  }
}

/** Divides groups into batches with at most `entriesAtOnce` entries together; a larger group is a batch of its own. */
function batchesOf(sizes: ReadonlyMap<number, number>): number[][] {
  const batches: number[][] = [];
  let entries = Number.POSITIVE_INFINITY;
  for (const [id, size] of sizes) {
    entries += size;
    if (entries > entriesAtOnce) {
      batches.push([]);
      entries = size;
    }
    batches.at(-1)!.push(id);
  }
  return batches;
}
