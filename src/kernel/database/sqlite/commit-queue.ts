import type { Clock } from '../../clock.ts';
import { DatabaseClosed, DatabaseOverloaded } from '../errors.ts';
import type { DatabaseStatistics } from '../statistics.ts';
import { Group } from './group.ts';
import type { Executor } from './protocol.ts';

/** Something that writes. */
export interface Entry {
  /** It is worth a flush of its own, and begins at once. */
  readonly isLarge: boolean;
  /** Takes part in `group`; must leave it as if it had not when it rejects. */
  run(group: Group): Promise<void>;
  /** Everything is on disk. */
  committed(): void;
  /** Nothing of it will be. */
  failed(error: unknown): void;
}

/** How much is committed together. */
export interface GroupLimits {
  /** Transactions and batches in one group. */
  readonly entries: number;
  /** Milliseconds after which a group takes no more of them. */
  readonly duration: number;
  /** Transactions and batches that may wait. */
  readonly waiting: number;
}

/**
 * How many groups the writing thread may hold. It does them one after the other; when it has ended one, the next is
 * there already, and need not come from a calling thread that may be busy.
 */
const groupsAtOnce = 2;

/**
 * Group commit. While groups wait for the disk, others line up; they are the next group. So a flush is shared by as
 * many as are ready, and someone alone does not wait for others to come.
 */
export class CommitQueue {
  readonly #executor: Executor;
  readonly #clock: Clock;
  readonly #limits: GroupLimits;
  readonly #statistics: DatabaseStatistics;
  #waiting: Entry[] = [];
  /** A group is doing its work, or is about to. */
  #isWorking = false;
  /** Groups whose end is on its way to the disk. */
  #ending = 0;
  #idle: (() => void) | undefined;
  #closed = false;

  constructor(executor: Executor, clock: Clock, limits: GroupLimits, statistics: DatabaseStatistics) {
    this.#executor = executor;
    this.#clock = clock;
    this.#limits = limits;
    this.#statistics = statistics;
  }

  add(entry: Entry): void {
    const refusal = this.#refusal();
    if (refusal) {
      entry.failed(refusal);
      return;
    }
    this.#waiting.push(entry);
    this.#next();
  }

  /** Takes nothing more; resolves when everything that was added has settled. */
  async close(): Promise<void> {
    this.#closed = true;
    if (!this.#isWorking && this.#ending === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  #refusal(): Error | undefined {
    if (this.#closed) return new DatabaseClosed('the database is closed');
    const full = this.#waiting.length >= this.#limits.waiting;
    return full ? new DatabaseOverloaded(`${this.#limits.waiting} writes are waiting`) : undefined;
  }

  /** Begins the next group when there is something for it and the writing thread may have it. */
  #next(): void {
    if (this.#isWorking || this.#ending >= groupsAtOnce) return;
    if (this.#waiting.length > 0) {
      this.#isWorking = true;
      // What arrives in the same turn of the event loop belongs to one group. But when many requests have come at once,
      // the end of the turn is far away, and the writing thread would have nothing to do until then.
      if (this.#waiting[0]?.isLarge) queueMicrotask(() => void this.#runGroup());
      else setImmediate(() => void this.#runGroup());
    } else if (this.#ending === 0) this.#idle?.();
  }

  /** Has the next entries do their work as one group, and sends for its commit. */
  async #runGroup(): Promise<void> {
    const entries = this.#waiting.splice(0, this.#limits.entries);
    const group = new Group(this.#executor);
    const taken = await this.#runEach(entries, group);
    this.#waiting.unshift(...entries.slice(taken.length));
    this.#ending += 1;
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
      await group.commit();
      for (const entry of entries) entry.committed();
    } catch (error) {
      for (const entry of entries) entry.failed(error);
    }
    this.#ending -= 1;
    this.#next();
  }

  /** Those that were run, in order; `undefined` for those that have failed. */
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
