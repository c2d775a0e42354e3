import type { JsonValue } from '../../protocol/index.ts';
import type { Clock } from '../clock.ts';
import { type AnyWriter, afterCommit, type Database, writerFor } from '../database/index.ts';
import type { Logger } from '../observability/index.ts';
import { FirstAttempts } from './first-attempts.ts';
import type { Job, JobHandler, JobRequest } from './job.ts';
import { type JobFilter, listJobs } from './listing.ts';
import type { RegisteredHandler } from './run-job.ts';
import { JobRunner } from './runner.ts';
import type { JobTables } from './store.ts';
import * as store from './store.ts';

export interface JobsOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether no other process uses this database, so that whatever runs at the start was interrupted. */
  readonly alone: boolean;
}

const cleaning = { kind: 'jobs/clean', interval: 3_600_000 };

/**
 * Work that must happen though the server stops: ordered in the transaction of its cause, run at least once.
 * Register all handlers, then `start`.
 */
export class Jobs {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #alone: boolean;
  readonly #handlers = new Map<string, RegisteredHandler>();
  readonly #untried: FirstAttempts;
  readonly #runner: JobRunner;
  #started = false;

  constructor({ database, clock, log, alone }: JobsOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#alone = alone;
    this.#untried = new FirstAttempts(clock);
    this.#runner = new JobRunner({ database, clock, log, handlers: this.#handlers, untried: this.#untried });
    this.every(cleaning.kind, cleaning.interval, {
      run: () => database.transaction((writer) => store.deleteKept(writer, clock.now())),
    });
  }

  /** Says how jobs of `kind` are done. */
  register<P extends JsonValue>(kind: string, handler: JobHandler<P>): void {
    this.#add(kind, { handler: handler as unknown as JobHandler<JsonValue> });
  }

  /**
   * Has `handler` run every `interval` milliseconds, in one of the processes; the first time that long after the
   * first start.
   */
  every(kind: string, interval: number, handler: JobHandler<null>): void {
    this.#add(kind, { handler: handler as unknown as JobHandler<JsonValue>, interval });
  }

  /** Orders a job, which exists when the transaction of `writer` is committed. */
  async schedule(writer: AnyWriter, order: JobRequest): Promise<void> {
    await store.insertJob(writerFor<JobTables>(writer), order, this.#clock.now());
    afterCommit(writer, () => {
      if (!this.#started) return;
      const { kind, key, runAt } = order;
      if (key !== undefined && runAt <= this.#clock.now()) this.#untried.ordered(kind, key);
      this.#runner.wake(runAt);
    });
  }

  /**
   * Resolves when the jobs of a kind that this process has ordered until now, and that were due at once, have been
   * tried once: for answers after which people look at what the jobs do.
   * @param key absent: all that have one
   * @param patience milliseconds that it takes at most
   */
  attempted(kind: string, key: string | undefined, patience: number): Promise<void> {
    return this.#untried.tried(kind, key, patience);
  }

  /** Takes back a job that has not been done. Whether there was one. One that runs now is not interrupted. */
  cancel(writer: AnyWriter, kind: string, key: string): Promise<boolean> {
    afterCommit(writer, () => this.#untried.cancelled(kind, key));
    return store.deleteJob(writerFor<JobTables>(writer), kind, key);
  }

  /** Jobs in the order of their ids. */
  list(filter: JobFilter = {}): Promise<Job[]> {
    return listJobs(this.#database.reader<JobTables>(), filter, this.#clock.now());
  }

  /** Begins to run jobs. */
  async start(): Promise<void> {
    await this.#database.transaction<JobTables, void>(async (writer) => {
      if (this.#alone) await store.releaseAll(writer);
      const now = this.#clock.now();
      for (const [kind, { interval }] of this.#handlers) {
        if (interval !== undefined) await store.ensureRecurring(writer, kind, now + interval, now);
      }
    });
    this.#started = true;
    this.#runner.start();
  }

  /** Takes no more jobs, tells those that run to end, and waits some seconds for them. */
  async stop(): Promise<void> {
    if (this.#started) await this.#runner.stop();
  }

  /** Resolves when no job runs and none is due: for tests. */
  settled(): Promise<void> {
    return this.#runner.settled();
  }

  #add(kind: string, registered: RegisteredHandler): void {
    if (this.#started || this.#handlers.has(kind)) throw new Error(`${kind}: too late, or registered twice`);
    this.#handlers.set(kind, registered);
  }
}
