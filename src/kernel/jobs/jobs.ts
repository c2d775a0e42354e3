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
  /** Whether only this process runs jobs of this database, so that those marked as running at the start were interrupted. */
  readonly alone: boolean;
}

const cleaning = { kind: 'jobs/clean', interval: 3_600_000 };

/**
 * Durable jobs: scheduled in the transaction of their cause, run at least once, also after a crash. Register all
 * handlers, then call `start`.
 */
export class Jobs {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #alone: boolean;
  readonly #handlers = new Map<string, RegisteredHandler>();
  readonly #firstAttempts: FirstAttempts;
  readonly #runner: JobRunner;
  #started = false;

  constructor({ database, clock, log, alone }: JobsOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#alone = alone;
    this.#firstAttempts = new FirstAttempts(clock);
    this.#runner = new JobRunner({
      database,
      clock,
      log,
      handlers: this.#handlers,
      firstAttempts: this.#firstAttempts,
    });
    this.every(cleaning.kind, cleaning.interval, {
      run: () => database.transaction((writer) => store.deleteKept(writer, clock.now())),
    });
  }

  /** Registers the handler of the jobs of `kind`. @throws Error after `start`, or when the kind has a handler */
  register<P extends JsonValue>(kind: string, handler: JobHandler<P>): void {
    this.#add(kind, { handler: handler as unknown as JobHandler<JsonValue> });
  }

  /** Runs `handler` every `interval` milliseconds; first that long after the first start. */
  every(kind: string, interval: number, handler: JobHandler<null>): void {
    this.#add(kind, { handler: handler as unknown as JobHandler<JsonValue>, interval });
  }

  /** Schedules a job, which exists once the transaction of `writer` is committed. */
  async schedule(writer: AnyWriter, request: JobRequest): Promise<void> {
    await store.insertJob(writerFor<JobTables>(writer), request, this.#clock.now());
    afterCommit(writer, () => {
      if (!this.#started) return;
      const { kind, key, runAt } = request;
      if (key !== undefined && runAt <= this.#clock.now()) this.#firstAttempts.scheduled(kind, key);
      this.#runner.wake(runAt);
    });
  }

  /**
   * Resolves when the jobs of a kind that this process has scheduled until now, and that were due at once, have been
   * attempted once. For responses after which users expect to see the effect of a job.
   * @param key by default all jobs with a key
   * @param timeout maximum wait in milliseconds
   */
  attempted(kind: string, key: string | undefined, timeout: number): Promise<void> {
    return this.#firstAttempts.attempted(kind, key, timeout);
  }

  /** Deletes a job that waits; one that runs is not interrupted. @returns whether there was one */
  cancel(writer: AnyWriter, kind: string, key: string): Promise<boolean> {
    afterCommit(writer, () => this.#firstAttempts.cancelled(kind, key));
    return store.deleteJob(writerFor<JobTables>(writer), kind, key);
  }

  /** Lists jobs in the order of their ids. */
  list(filter: JobFilter = {}): Promise<Job[]> {
    return listJobs(this.#database.reader<JobTables>(), filter, this.#clock.now());
  }

  /** Starts to run jobs. */
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

  /** Starts no more jobs, aborts the signal of those that run, and waits some seconds for them. */
  async stop(): Promise<void> {
    if (this.#started) await this.#runner.stop();
  }

  /** Resolves when no job runs and none is due. For tests. */
  settled(): Promise<void> {
    return this.#runner.settled();
  }

  #add(kind: string, registered: RegisteredHandler): void {
    if (this.#started || this.#handlers.has(kind))
      throw new Error(`job kind ${kind}: registered after the start, or twice`);
    this.#handlers.set(kind, registered);
  }
}
