import type { JsonValue } from '../../protocol/index.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/index.ts';
import type { Logger } from '../observability/index.ts';
import type { FirstAttempts } from './first-attempts.ts';
import type { JobAttempt, JobHandler, JobTracing } from './job.ts';
import {
  interruption,
  isCancelled,
  type JobOutcome,
  type JobTables,
  type StoredJob,
  saveProgress,
  settleInterrupted,
  settleJob,
} from './store.ts';

/** A handler and the interval of its recurring job. */
export interface RegisteredHandler {
  readonly handler: JobHandler<JsonValue>;
  /** Milliseconds between the starts of two runs of a recurring job. */
  readonly interval?: number;
}

/** Dependencies of running jobs. */
export interface JobDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly handlers: ReadonlyMap<string, RegisteredHandler>;
  readonly firstAttempts: FirstAttempts;
  /** Whether no other process schedules or runs jobs of this database. */
  readonly isOnlyProcess: boolean;
  /** Absent where tracing is disabled. */
  readonly tracing?: JobTracing | undefined;
}

/** Times in milliseconds. */
export const runnerLimits = {
  /** Maximum number of jobs that run at the same time in one process. */
  parallel: 4,
  /** Time for which a process leases a job without renewing the lease. */
  lease: 60_000,
  /** Interval of polling for jobs that other processes have scheduled. */
  poll: 10_000,
  /**
   * Interval of polling where no other process schedules jobs: finds jobs after the machine was suspended or its clock
   * was set.
   */
  pollAlone: 60_000,
  maxAttempts: 20,
  firstBackoff: 1_000,
  maxBackoff: 3_600_000,
  /** Number of failures in a row after which a recurring job needs an administrator. */
  unexpectedAfter: 3,
  /** Time for which failed jobs are stored. */
  keepFailed: 30 * 86_400_000,
  /** Time that `stop` waits for running jobs. */
  grace: 5_000,
  /** Time that `stop` then waits until the leases of jobs that still run are ended. */
  endingLeases: 1_000,
};

/** Runs the handler of a job that this process has leased, and stores the outcome. Never rejects. */
export async function runJob(deps: JobDeps, job: StoredJob, signal: AbortSignal): Promise<void> {
  const registered = deps.handlers.get(job.kind);
  if (!registered) return;
  const log = deps.log.child({ job: job.kind, key: job.key });
  let outcome: JobOutcome;
  const startedAt = deps.clock.now();
  const attemptEnded = deps.firstAttempts.begin(job.kind, job.key ?? '');
  try {
    signal.throwIfAborted();
    const run = async () => registered.handler.run(attemptOf(deps.database, job, signal));
    const result = await (deps.tracing?.runJob(job.kind, job.traceContext, run) ?? run());
    outcome = afterSuccess(registered, { startedAt, now: deps.clock.now() }, result ?? null);
  } catch (error) {
    outcome = signal.aborted ? notAttempted(job) : afterFailure(registered, job, deps.clock.now(), error);
    if (!signal.aborted) {
      const level = isUnexpected(registered, job, outcome) ? 'error' : 'warn';
      log[level]({ err: error, attempt: job.attempts }, 'Job failed');
    }
  }
  attemptEnded();
  try {
    await deps.database.transaction((writer) => settleJob(writer, job, outcome));
  } catch (error) {
    log.error({ err: error }, 'The outcome of a job could not be stored, the job will run again');
  }
}

/** Whether the last attempt ended without an outcome, because its process crashed, or could not store the outcome. */
export function wasInterrupted({ leaseUntil, attempts }: StoredJob): boolean {
  // A job that was scheduled again during the attempt has no attempts, and runs at once.
  return leaseUntil > 0 && attempts > 1;
}

/**
 * Treats an interrupted attempt of a job like a failed one: postpones the job, or marks it as failed. Otherwise a job
 * that crashes the process would run at every start.
 */
export async function settleInterruptedJobs(deps: JobDeps, jobs: readonly StoredJob[]): Promise<void> {
  const settled = jobs.map((job) => {
    const registered = deps.handlers.get(job.kind)!;
    const attempt = { ...job, attempts: job.attempts - 1 };
    const error = new Error(interruption);
    const outcome = afterFailure(registered, attempt, deps.clock.now(), error);
    const level = isUnexpected(registered, attempt, outcome) ? 'error' : 'warn';
    return { job, outcome, level, line: { err: error, attempt: attempt.attempts } } as const;
  });
  await deps.database.transaction(async (writer) => {
    for (const { job, outcome } of settled) await settleInterrupted(writer, job, outcome);
  });
  for (const { job, level, line } of settled) {
    deps.log.child({ job: job.kind, key: job.key })[level](line, 'Job failed');
  }
}

/** Whether an administrator should look at a failure: nothing retries the job, or a recurring job keeps failing. */
function isUnexpected({ interval }: RegisteredHandler, job: StoredJob, outcome: JobOutcome): boolean {
  if (interval !== undefined) return job.attempts === runnerLimits.unexpectedAfter;
  return outcome !== 'delete' && outcome.state === 'failed';
}

function attemptOf(database: Database, job: StoredJob, signal: AbortSignal): JobAttempt<JsonValue> {
  return {
    id: job.id,
    key: job.key,
    payload: job.payload,
    attempt: job.attempts,
    signal,
    progress: (payload) => database.transaction((writer) => saveProgress(writer, job, payload)),
    isCancelled: () => isCancelled(database.reader<JobTables>(), job.id),
  };
}

/** The outcome of an attempt that a stop of the server has ended: the job runs again after the next start. */
export const notAttempted = ({ attempts }: StoredJob): JobOutcome => ({ attempts: attempts - 1 });

function afterSuccess(
  { handler, interval }: RegisteredHandler,
  { startedAt, now }: { readonly startedAt: number; readonly now: number },
  result: JsonValue,
): JobOutcome {
  if (interval !== undefined)
    return { run_at: startedAt + interval, attempts: 0, finished_ts: now, error: null };
  if (!handler.keep) return 'delete';
  return {
    state: 'done',
    finished_ts: now,
    keep_until: now + handler.keep,
    result: JSON.stringify(result),
    error: null,
  };
}

function afterFailure(
  { handler, interval }: RegisteredHandler,
  { attempts }: StoredJob,
  now: number,
  error: unknown,
): Exclude<JobOutcome, 'delete'> {
  const message = error instanceof Error ? error.message : String(error);
  const wait = handler.backoff?.(attempts) ?? defaultBackoff(attempts);
  if (interval !== undefined) return { run_at: now + Math.min(wait, interval), error: message };
  if (attempts < (handler.maxAttempts ?? runnerLimits.maxAttempts))
    return { run_at: now + wait, error: message };
  return { state: 'failed', finished_ts: now, keep_until: now + runnerLimits.keepFailed, error: message };
}

function defaultBackoff(attempt: number): number {
  return Math.min(runnerLimits.firstBackoff * 2 ** (attempt - 1), runnerLimits.maxBackoff);
}
