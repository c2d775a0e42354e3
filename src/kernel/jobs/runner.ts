import { sleep, type Timer } from '../clock.ts';
import type { Writer } from '../database/index.ts';
import { type JobDeps, runJob, runnerLimits } from './run-job.ts';
import type { ClaimedJob, JobTables } from './store.ts';
import * as store from './store.ts';

/** Polls for jobs that are due, leases them and runs their handlers. */
export class JobRunner {
  readonly #deps: JobDeps;
  readonly #running = new Map<number, { kind: string; done: Promise<void> }>();
  readonly #stopping = new AbortController();
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #renewal: Timer | undefined;
  #looking: Promise<void> | undefined;
  #lookAgain = false;

  constructor(deps: JobDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#renewLater();
    this.wake();
  }

  /** Polls at `time` at the latest; by default now. */
  wake(time = 0): void {
    if (this.#stopping.signal.aborted || this.#timerAt <= time) return;
    this.#timer?.cancel();
    const delay = time - this.#deps.clock.now();
    if (delay > 0) {
      this.#timerAt = time;
      this.#timer = this.#deps.clock.setTimer(delay, () => this.wake());
      return;
    }
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#lookAgain = true;
    this.#looking ??= this.#look();
  }

  /** Waits some seconds for running jobs; those that have not ended by then run again after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#timer?.cancel();
    this.#renewal?.cancel();
    await this.#looking;
    const grace = new AbortController();
    const all = Promise.all([...this.#running.values()].map(({ done }) => done));
    await Promise.race([all, sleep(this.#deps.clock, runnerLimits.grace, grace.signal)]);
    grace.abort();
  }

  /** Resolves when no job runs and none is due. */
  async settled(): Promise<void> {
    while (this.#looking || this.#running.size > 0) {
      await this.#looking;
      await Promise.all([...this.#running.values()].map(({ done }) => done));
    }
  }

  async #look(): Promise<void> {
    try {
      while (this.#lookAgain && !this.#stopping.signal.aborted) {
        this.#lookAgain = false;
        const next = await this.#takeDue();
        this.wake(Math.min(next, this.#deps.clock.now() + runnerLimits.poll));
      }
    } catch (error) {
      this.#deps.log.error({ err: error }, 'Jobs could not be read');
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.wake(this.#deps.clock.now() + runnerLimits.poll);
    } finally {
      this.#looking = undefined;
    }
  }

  /** Starts as many due jobs as may run. Resolves with the time of the next poll. */
  async #takeDue(): Promise<number> {
    const { database, clock } = this.#deps;
    const kinds = [...this.#deps.handlers.keys()].filter((kind) => this.#freeSlots(kind) > 0);
    const slots = runnerLimits.parallel - this.#running.size;
    if (slots <= 0 || kinds.length === 0) return Number.POSITIVE_INFINITY;
    const reader = database.reader<JobTables>();
    const now = clock.now();
    const due = await store.dueJobs(reader, kinds, now, slots);
    if (due.length === 0) return (await store.nextDue(reader, kinds, now)) ?? Number.POSITIVE_INFINITY;
    for (const job of await this.#claim(this.#startable(due))) this.#begin(job);
    return 0;
  }

  /** Returns how many more jobs of `kind` may run. */
  #freeSlots(kind: string): number {
    const running = [...this.#running.values()].filter((job) => job.kind === kind).length;
    return (this.#deps.handlers.get(kind)?.handler.parallel ?? runnerLimits.parallel) - running;
  }

  /** Returns the first of `due`, at most as many of each kind as may run. */
  #startable(due: readonly ClaimedJob[]): ClaimedJob[] {
    const chosen = new Map<string, number>();
    return due.filter(({ kind }) => {
      const count = (chosen.get(kind) ?? 0) + 1;
      chosen.set(kind, count);
      return count <= this.#freeSlots(kind);
    });
  }

  /** Leases the jobs that no other process has leased meanwhile. */
  #claim(due: readonly ClaimedJob[]): Promise<ClaimedJob[]> {
    const now = this.#deps.clock.now();
    return this.#deps.database.transaction(async (writer: Writer<JobTables>) => {
      const taken: ClaimedJob[] = [];
      for (const job of due) {
        if (await store.claimJob(writer, job, now, now + runnerLimits.lease)) taken.push(job);
      }
      return taken;
    });
  }

  #begin(job: ClaimedJob): void {
    const done = runJob(this.#deps, job, this.#stopping.signal).finally(() => {
      this.#running.delete(job.id);
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.wake();
    });
    this.#running.set(job.id, { kind: job.kind, done });
  }

  #renewLater(): void {
    this.#renewal = this.#deps.clock.setTimer(runnerLimits.lease / 3, () => {
      this.#renew().finally(() => {
        if (!this.#stopping.signal.aborted) this.#renewLater();
      });
    });
  }

  async #renew(): Promise<void> {
    const ids = [...this.#running.keys()];
    if (ids.length === 0) return;
    const until = this.#deps.clock.now() + runnerLimits.lease;
    try {
      await this.#deps.database.transaction((writer) => store.renewLeases(writer, ids, until));
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'The leases of running jobs could not be renewed');
    }
  }
}
