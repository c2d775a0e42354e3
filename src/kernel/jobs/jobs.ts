import type { JsonValue } from '../../protocol/index.ts';
import type { Clock } from '../clock.ts';
import { type AnyWriter, afterCommit, type Database, writerFor } from '../database/index.ts';
import type { Logger } from '../observability/index.ts';
import { FirstAttempts } from './first-attempts.ts';
import type { Job, JobHandler, JobRequest, JobTracing } from './job.ts';
import { type JobFilter, listJobs } from './listing.ts';
import type { RegisteredHandler } from './run-job.ts';
import { JobRunner } from './runner.ts';
import type { JobTables } from './store.ts';
import * as store from './store.ts';

export interface JobsOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether only this process runs jobs of this database, so that jobs marked as running at its start were interrupted. */
  readonly isOnlyProcess: boolean;
  /** Absent where tracing is disabled. */
  readonly tracing?: JobTracing | undefined;
}

/** Number of jobs that one statement adds. */
const jobsAtOnce = 500;

const cleaning = { kind: 'jobs/clean', interval: 3_600_000 };

/**
 * Durable jobs: scheduled in the transaction of their cause, run at least once, also after a crash. Register all
 * handlers, then call `start`.
 */
export class Jobs {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #isOnlyProcess: boolean;
  readonly #handlers = new Map<string, RegisteredHandler>();
  readonly #firstAttempts: FirstAttempts;
  readonly #runner: JobRunner;
  readonly #tracing: JobTracing | undefined;
  #started = false;

  constructor({ database, clock, log, isOnlyProcess, tracing }: JobsOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#isOnlyProcess = isOnlyProcess;
    this.#tracing = tracing;
    this.#firstAttempts = new FirstAttempts(clock);
    this.#runner = new JobRunner({
      database,
      clock,
      log,
      handlers: this.#handlers,
      firstAttempts: this.#firstAttempts,
      isOnlyProcess,
      tracing,
    });
    this.every(cleaning.kind, cleaning.interval, {
      run: () => database.transaction((writer) => store.deleteExpired(writer, clock.now())),
    });
  }

  /** Registers the handler of the jobs of `kind`. @throws Error after `start`, or when the kind has a handler */
  register<P extends JsonValue>(kind: string, handler: JobHandler<P>): void {
    this.#add(kind, { handler: handler as unknown as JobHandler<JsonValue> });
  }

  /**
   * Starts `handler` every `interval` milliseconds: for the first time one interval after the first start, and at once
   * after a run that took longer than the interval. The payload is the progress that the handler last stored, even in
   * an earlier run; null if it has stored none.
   */
  every<P extends JsonValue = null>(kind: string, interval: number, handler: JobHandler<P | null>): void {
    this.#add(kind, { handler: handler as unknown as JobHandler<JsonValue>, interval });
  }

  /** Schedules a job, which exists once the transaction of `writer` is committed. */
  schedule(writer: AnyWriter, request: JobRequest): Promise<void> {
    return this.scheduleAll(writer, [request]);
  }

  /**
   * Schedules many jobs as `schedule` does, with few statements.
   * @param requests requests with different keys; `replace` of the first request counts for all of them
   */
  async scheduleAll(writer: AnyWriter, requests: readonly JobRequest[]): Promise<void> {
    const origin = {
      traceContext: this.#tracing?.captureForJob(),
      areLeasesOutdated: this.#isOnlyProcess && !this.#started,
    };
    for (let start = 0; start < requests.length; start += jobsAtOnce) {
      const chunk = requests.slice(start, start + jobsAtOnce);
      await store.insertJobs(writerFor<JobTables>(writer), chunk, this.#clock.now(), origin);
    }
    afterCommit(writer, () => {
      if (!this.#started) return;
      for (const { kind, key, runAt } of requests) {
        if (key !== undefined && runAt <= this.#clock.now()) this.#firstAttempts.scheduled(kind, key);
        this.#runner.wake(runAt);
      }
    });
  }

  /**
   * Resolves when the jobs of a kind that this process has scheduled until now, and that were due at once, have been
   * attempted once. For responses after which users expect to see the effect of a job.
   * @param key by default all jobs of the kind that have a key
   * @param timeout maximum wait in milliseconds
   */
  attempted(kind: string, key: string | undefined, timeout: number): Promise<void> {
    return this.#firstAttempts.attempted(kind, key, timeout);
  }

  /**
   * Deletes a job that waits or runs, or marks it as cancelled. It does not run again; a running attempt ends when it
   * calls `isCancelled`.
   * @param keep milliseconds for which a job that is marked as cancelled stays in the list; absent: it is deleted
   * @returns whether there was such a job
   */
  cancel(writer: AnyWriter, kind: string, key: string, keep?: number): Promise<boolean> {
    afterCommit(writer, () => this.#firstAttempts.cancelled(kind, key));
    const jobWriter = writerFor<JobTables>(writer);
    if (keep === undefined) return store.deleteJob(jobWriter, kind, key);
    const now = this.#clock.now();
    return store.cancelJob(jobWriter, { kind, key }, now, now + keep);
  }

  /** Lists jobs in the order of their ids. A filter without a kind scans the whole table. */
  list(filter: JobFilter = {}): Promise<Job[]> {
    const database = this.#database;
    return listJobs(
      filter.kind === undefined ? database.scanner<JobTables>() : database.reader<JobTables>(),
      filter,
      this.#clock.now(),
      (kind, payload) => this.#handlers.get(kind)?.handler.progressOf?.(payload) ?? null,
    );
  }

  /** Starts to run jobs. */
  async start(): Promise<void> {
    await this.#database.transaction<JobTables, void>(async (writer) => {
      const now = this.#clock.now();
      if (this.#isOnlyProcess) await store.expireLeases(writer, now);
      const intervals = new Map<string, number>();
      for (const [kind, { interval }] of this.#handlers)
        if (interval !== undefined) intervals.set(kind, interval);
      await store.ensureRecurring(writer, intervals, now, { areLeasesOutdated: this.#isOnlyProcess });
    });
    this.#started = true;
    this.#runner.start();
  }

  /** Starts no more jobs, aborts the signals of running jobs, and waits some seconds for them. */
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
