import type { JsonValue } from '../../protocol/index.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/index.ts';
import type { Logger } from '../observability/index.ts';
import type { FirstAttempts } from './first-attempts.ts';
import type { JobAttempt, JobHandler } from './job.ts';
import { type ClaimedJob, type JobOutcome, saveProgress, settleJob } from './store.ts';

/** A handler and the interval of its recurring job. */
export interface RegisteredHandler {
  readonly handler: JobHandler<JsonValue>;
  /** Milliseconds between two runs of a recurring job. */
  readonly interval?: number;
}

/** Dependencies of running jobs. */
export interface JobDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly handlers: ReadonlyMap<string, RegisteredHandler>;
  readonly firstAttempts: FirstAttempts;
}

/** Times in milliseconds. */
export const runnerLimits = {
  /** Maximum number of jobs that run at the same time in one process. */
  parallel: 4,
  /** Time for which a process leases a job without renewing the lease. */
  lease: 60_000,
  /** Interval of polling for jobs that other processes have scheduled. */
  poll: 10_000,
  maxAttempts: 20,
  firstBackoff: 1_000,
  maxBackoff: 3_600_000,
  keepFailed: 30 * 86_400_000,
  /** Time that `stop` waits for running jobs. */
  grace: 5_000,
};

/** Runs the handler of a job that this process has leased, and stores the outcome. Never rejects. */
export async function runJob(deps: JobDeps, job: ClaimedJob, signal: AbortSignal): Promise<void> {
  const registered = deps.handlers.get(job.kind);
  if (!registered) return;
  const log = deps.log.child({ job: job.kind, key: job.key });
  let outcome: JobOutcome;
  const attemptEnded = deps.firstAttempts.begin(job.kind, job.key ?? '');
  try {
    signal.throwIfAborted();
    const result = await registered.handler.run(attemptOf(deps.database, job, signal));
    outcome = afterSuccess(registered, deps.clock.now(), result ?? null);
  } catch (error) {
    outcome = signal.aborted
      ? { attempts: job.attempts - 1 }
      : afterFailure(registered, job, deps.clock.now(), error);
    if (!signal.aborted) log.warn({ err: error, attempt: job.attempts }, 'Job failed');
  }
  attemptEnded();
  try {
    await deps.database.transaction((writer) => settleJob(writer, job, outcome));
  } catch (error) {
    log.error({ err: error }, 'The outcome of a job could not be stored, the job will run again');
  }
}

function attemptOf(database: Database, job: ClaimedJob, signal: AbortSignal): JobAttempt<JsonValue> {
  return {
    id: job.id,
    key: job.key,
    payload: job.payload,
    attempt: job.attempts,
    signal,
    progress: (payload) => database.transaction((writer) => saveProgress(writer, job, payload)),
  };
}

function afterSuccess({ handler, interval }: RegisteredHandler, now: number, result: JsonValue): JobOutcome {
  if (interval !== undefined) return { run_at: now + interval, attempts: 0, finished_ts: now, error: null };
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
  { attempts }: ClaimedJob,
  now: number,
  error: unknown,
): JobOutcome {
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
