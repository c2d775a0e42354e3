import type { Clock } from '../../clock.ts';
import { DatabaseClosed, DatabaseOverloaded } from '../errors.ts';
import { type DatabaseStatistics, type PoolUse, timed } from '../statistics.ts';
import { Group } from './group.ts';
import type { Executor } from './protocol.ts';

/** A transaction or batch in the queue. */
export interface Entry {
  /** Whether the entry is large enough for a flush of its own. It then does not wait for others to join its group. */
  readonly isLarge: boolean;
  /** Runs in `group`. When it rejects, it must have undone its effects in the group. */
  run(group: Group): Promise<void>;
  /** Called when all writes of the entry are on disk. */
  committed(): void;
  /** Called when the entry has failed: none of its writes will be on disk. */
  failed(error: unknown): void;
}

/** Bounds of a commit group. */
export interface GroupLimits {
  /** Maximum transactions and batches in one group. */
  readonly entries: number;
  /** Milliseconds after which a group takes no further entries. */
  readonly duration: number;
  /** Maximum waiting transactions and batches. */
  readonly waiting: number;
}

/**
 * Maximum number of groups that are sent to the writing thread. The thread runs them one after the other. With two
 * groups, it need not wait for the calling thread, which may be busy.
 */
const maxRunningGroups = 2;

/**
 * Group commit: while groups wait for the disk, further entries collect and form the next group. So all ready
 * entries share a flush, and a single entry does not wait for others.
 */
export class CommitQueue {
  readonly #executor: Executor;
  readonly #clock: Clock;
  readonly #limits: GroupLimits;
  readonly #statistics: DatabaseStatistics;
  #waiting: Entry[] = [];
  /** Whether a group is running its entries, or is about to run them. */
  #isWorking = false;
  /** Number of groups whose commit is running. */
  #committing = 0;
  /** Called when no entry waits and no group runs; set by `close`. */
  #onIdle: (() => void) | undefined;
  #closed = false;
  /** The time at which the first waiting entry was added, by `performance.now()`. */
  #waitingSince = 0;

  constructor(executor: Executor, clock: Clock, limits: GroupLimits, statistics: DatabaseStatistics) {
    this.#executor = executor;
    this.#clock = clock;
    this.#limits = limits;
    this.#statistics = statistics;
  }

  /** The use of the writing thread: groups that run, and transactions and batches that wait for the next one. */
  get use(): PoolUse {
    const inUse = this.#committing + (this.#isWorking ? 1 : 0);
    return { inUse, idle: inUse === 0 ? 1 : 0, waiting: this.#waiting.length };
  }

  /** Adds an entry. While the queue is closed or full, the entry fails at once. */
  add(entry: Entry): void {
    const refusal = this.#refusal();
    if (refusal) {
      entry.failed(refusal);
      return;
    }
    if (this.#waiting.length === 0) this.#waitingSince = performance.now();
    this.#waiting.push(entry);
    this.#next();
  }

  /** Rejects further entries; resolves when all added ones have settled. */
  async close(): Promise<void> {
    this.#closed = true;
    if (!this.#isWorking && this.#committing === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #refusal(): Error | undefined {
    if (this.#closed) return new DatabaseClosed('the database is closed');
    const full = this.#waiting.length >= this.#limits.waiting;
    return full ? new DatabaseOverloaded(`${this.#limits.waiting} writes are waiting`) : undefined;
  }

  /** Starts the next group when entries wait and the writing thread has room for it. */
  #next(): void {
    if (this.#isWorking || this.#committing >= maxRunningGroups) return;
    if (this.#waiting.length > 0) {
      this.#isWorking = true;
      // Entries added in one turn of the event loop form one group. A large entry starts at once: with many
      // requests, the end of the turn is far away, and the writing thread would be idle until then.
      if (this.#waiting[0]?.isLarge) queueMicrotask(() => void this.#runGroup());
      else setImmediate(() => void this.#runGroup());
    } else if (this.#committing === 0) this.#onIdle?.();
  }

  /** Runs the next entries as one group and starts its commit. */
  async #runGroup(): Promise<void> {
    this.#statistics.timings.observe?.('wait', performance.now() - this.#waitingSince);
    const entries = this.#waiting.splice(0, this.#limits.entries);
    const group = new Group(this.#executor);
    const taken = await this.#runEach(entries, group);
    this.#waiting.unshift(...entries.slice(taken.length));
    this.#committing += 1;
    void this.#end(
      group,
      taken.filter((entry) => entry !== undefined),
    );
    this.#isWorking = false;
    this.#next();
  }

  async #end(group: Group, entries: readonly Entry[]): Promise<void> {
    try {
      this.#statistics.flushes += 1;
      await timed(this.#statistics.timings, 'commit', () => group.commit());
      for (const entry of entries) entry.committed();
    } catch (error) {
      for (const entry of entries) entry.failed(error);
    }
    this.#committing -= 1;
    this.#next();
  }

  /** Returns the entries that were run, in order; `undefined` for failed ones. */
  async #runEach(entries: readonly Entry[], group: Group): Promise<(Entry | undefined)[]> {
    const end = this.#clock.monotonic() + this.#limits.duration;
    const taken: (Entry | undefined)[] = [];
    for (const entry of entries) {
      if (taken.length > 0 && this.#clock.monotonic() > end) break;
      try {
        await entry.run(group);
        taken.push(entry);
      } catch (error) {
        entry.failed(error);
        taken.push(undefined);
      }
    }
    return taken;
  }
}
