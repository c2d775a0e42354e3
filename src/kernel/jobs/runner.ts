import { sleep, type Timer } from '../clock.ts';
import type { Writer } from '../database/index.ts';
import {
  type JobDeps,
  notAttempted,
  runJob,
  runnerLimits,
  settleInterruptedJobs,
  wasInterrupted,
} from './run-job.ts';
import type { JobTables, StoredJob } from './store.ts';
import * as store from './store.ts';

/** Polls for jobs that are due, leases them and runs their handlers. */
export class JobRunner {
  readonly #deps: JobDeps;
  readonly #running = new Map<number, { job: StoredJob; done: Promise<void> }>();
  readonly #stopping = new AbortController();
  /** The time at which the last lease of this process ends. */
  #leasedUntil = 0;
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #renewal: Timer | undefined;
  #polling: Promise<void> | undefined;
  #mustPollAgain = false;

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
    this.#mustPollAgain = true;
    this.#polling ??= this.#poll();
  }

  /**
   * Stops polling, aborts the signals of running jobs, and waits some seconds for them. Jobs that have not ended by then
   * run again after the next start.
   */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('Interrupted because the server stops'));
    this.#timer?.cancel();
    this.#renewal?.cancel();
    await this.#polling;
    await this.#within(runnerLimits.grace, Promise.all([...this.#running.values()].map(({ done }) => done)));
    if (this.#running.size > 0) await this.#within(runnerLimits.endingLeases, this.#endLeases());
  }

  /** Resolves when `work` does, or after `time` milliseconds. */
  async #within(time: number, work: Promise<unknown>): Promise<void> {
    const waiting = new AbortController();
    await Promise.race([work, sleep(this.#deps.clock, time, waiting.signal)]);
    waiting.abort();
  }

  /** Ends the leases of jobs that are still running after a stop, so that the stop does not count as a failure. */
  async #endLeases(): Promise<void> {
    try {
      await this.#deps.database.transaction(async (writer: Writer<JobTables>) => {
        for (const { job } of this.#running.values()) await store.settleJob(writer, job, notAttempted(job));
      });
    } catch (error) {
      this.#deps.log.warn(
        { err: error },
        'The leases of interrupted jobs could not be ended: the stop counts as a failed attempt of these jobs',
      );
    }
  }

  /** Resolves when no job runs and none is due. */
  async settled(): Promise<void> {
    while (this.#polling || this.#running.size > 0) {
      await this.#polling;
      await Promise.all([...this.#running.values()].map(({ done }) => done));
    }
  }

  async #poll(): Promise<void> {
    try {
      while (this.#mustPollAgain && !this.#stopping.signal.aborted) {
        this.#mustPollAgain = false;
        const next = await this.#takeDue();
        const { isOnlyProcess, clock } = this.#deps;
        this.wake(Math.min(next, clock.now() + (isOnlyProcess ? runnerLimits.pollAlone : runnerLimits.poll)));
      }
    } catch (error) {
      this.#deps.log.error({ err: error }, 'Jobs that are due could not be read or leased');
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.wake(this.#deps.clock.now() + runnerLimits.poll);
    } finally {
      this.#polling = undefined;
    }
  }

  /** Starts as many due jobs as may run. Resolves with the time of the next poll; 0 for at once. */
  async #takeDue(): Promise<number> {
    const { isOnlyProcess, database, clock } = this.#deps;
    const kinds = [...this.#deps.handlers.keys()].filter((kind) => this.#freeSlots(kind) > 0);
    const slots = runnerLimits.parallel - this.#running.size;
    if (slots <= 0 || kinds.length === 0) return Number.POSITIVE_INFINITY;
    const reader = database.reader<JobTables>();
    const now = clock.now();
    const found = await store.nextJobs(reader, kinds, now, slots);
    // After a suspension of the machine, the leases of running jobs have expired, and `nextJobs` returns these jobs.
    const next = found.filter(({ id }) => !this.#running.has(id));
    const due = next.filter(({ runAt }) => runAt <= now);
    const interrupted = due.filter(wasInterrupted);
    if (interrupted.length > 0) {
      await settleInterruptedJobs(this.#deps, interrupted);
      return 0;
    }
    if (due.length === 0) {
      const mayBeLeased = !isOnlyProcess || this.#leasedUntil > now;
      const leaseEnd = mayBeLeased ? await store.nextLeaseEnd(reader, kinds, now) : undefined;
      return Math.min(next[0]?.runAt ?? Number.POSITIVE_INFINITY, leaseEnd ?? Number.POSITIVE_INFINITY);
    }
    for (const job of await this.#claim(this.#startable(due))) this.#begin(job);
    return 0;
  }

  /** Returns how many more jobs of `kind` may run. */
  #freeSlots(kind: string): number {
    const running = [...this.#running.values()].filter(({ job }) => job.kind === kind).length;
    return (this.#deps.handlers.get(kind)?.handler.parallel ?? runnerLimits.parallel) - running;
  }

  /** Returns the first jobs of `due`: of each kind, at most as many as may run. */
  #startable(due: readonly StoredJob[]): StoredJob[] {
    const chosen = new Map<string, number>();
    return due.filter(({ kind }) => {
      const count = (chosen.get(kind) ?? 0) + 1;
      chosen.set(kind, count);
      return count <= this.#freeSlots(kind);
    });
  }

  /** Leases the jobs that no other process has leased meanwhile. */
  #claim(due: readonly StoredJob[]): Promise<StoredJob[]> {
    const now = this.#deps.clock.now();
    const until = now + runnerLimits.lease;
    this.#leasedUntil = until;
    return this.#deps.database.transaction(async (writer: Writer<JobTables>) => {
      const taken: StoredJob[] = [];
      for (const job of due) {
        if (await store.claimJob(writer, job, now, until)) taken.push(job);
      }
      return taken;
    });
  }

  #begin(job: StoredJob): void {
    const done = runJob(this.#deps, job, this.#stopping.signal).finally(() => {
      this.#running.delete(job.id);
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.wake();
    });
    this.#running.set(job.id, { job, done });
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
    this.#leasedUntil = until;
    try {
      await this.#deps.database.transaction((writer) => store.renewLeases(writer, ids, until));
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'The leases of running jobs could not be renewed');
    }
  }
}
