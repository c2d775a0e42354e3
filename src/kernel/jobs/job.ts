import type { JsonValue } from '../../protocol/index.ts';

/** A job to schedule. */
export interface JobRequest {
  /** Selects the handler; unique over all slices: `rooms/purge`. */
  readonly kind: string;
  /**
   * Identifies the subject of the job, for instance a room. At most one job of a kind and key exists:
   * a request does not change a waiting job (unless `replace` is set), makes a running job run once more
   * afterwards, and replaces a job that has ended. Without a key, every request makes a job.
   */
  readonly key?: string;
  readonly payload: JsonValue;
  /** Earliest start, in milliseconds since the epoch. */
  readonly runAt: number;
  /** Replaces the payload and the time of a waiting job of this kind and key. */
  readonly replace?: boolean;
}

/** Records jobs in the traces of the requests that schedule them; declared here, supplied where traces are enabled. */
export interface JobTracing {
  /** Returns the trace context of the current request; `null` if there is none. The jobs of the request carry it. */
  captureForJob(): string | null;
  /** Runs an attempt of a job. @param captured the context that the job carries */
  runJob<T>(kind: string, captured: string | null, run: () => Promise<T>): Promise<T>;
}

/**
 * `waiting`: waits for its first or next attempt, or is running. `done`: has succeeded, and is stored so that its result
 * can be read. `cancelled`: was ended before it was done, and is stored so that its progress can be read. `failed`: has
 * failed too often to be tried again.
 */
export type JobState = 'waiting' | 'done' | 'cancelled' | 'failed';

/** Progress of a job, in the units of its kind: rooms, users, events. */
export interface JobProgress {
  readonly done: number;
  /** Null while it is not known. */
  readonly total: number | null;
}

/** A job as the admin API shows it. Times in milliseconds since the epoch. */
export interface Job {
  readonly id: number;
  readonly kind: string;
  readonly key: string | null;
  readonly payload: JsonValue;
  /** Null for kinds that do not report their progress. */
  readonly progress: JobProgress | null;
  readonly state: JobState;
  readonly running: boolean;
  /** Earliest time of the next attempt; of a job that has ended, of its last attempt. */
  readonly runAt: number;
  /** When the job was scheduled last. */
  readonly createdAt: number;
  /** Number of attempts that were started. */
  readonly attempts: number;
  readonly finishedAt: number | null;
  /** Return value of the handler. */
  readonly result: JsonValue | null;
  /** Error message of the last attempt. */
  readonly error: string | null;
}

/** Input of a handler for one attempt. */
export interface JobAttempt<P extends JsonValue> {
  readonly id: number;
  readonly key: string | null;
  readonly payload: P;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /**
   * Aborts when the server stops: the attempt must end soon. If it throws then, the job runs again after the next
   * start; if it returns, the job is done.
   */
  readonly signal: AbortSignal;
  /** Replaces the payload, so that the next attempt continues from here. */
  progress(payload: P): Promise<void>;
  /** Whether the job was cancelled meanwhile: the attempt should then end, and has no outcome. */
  isCancelled(): Promise<boolean>;
}

/** Runs the jobs of one kind. */
export interface JobHandler<P extends JsonValue> {
  /**
   * Performs the job. Must be idempotent: after a crash or a lost lease, a job runs again. The return value is stored
   * as the result; a rejection is retried after a backoff.
   */
  run(attempt: JobAttempt<P>): Promise<JsonValue | undefined> | Promise<void>;
  /**
   * Maximum number of jobs of this kind that run at the same time; by default only the maximum of all kinds together
   * applies.
   */
  readonly parallel?: number;
  /** Number of attempts after which the job has failed; by default 20. */
  readonly maxAttempts?: number;
  /** Milliseconds to wait after a failed attempt, by its number; by default 1 second, doubling up to 1 hour. */
  readonly backoff?: (attempt: number) => number;
  /** Reads the progress from the payload that the job last stored. */
  readonly progressOf?: (payload: P) => JobProgress;
  /** Milliseconds for which a job that is done stays in the list; by default it is deleted at once. */
  readonly keep?: number;
}
