import type { JsonValue } from '../../protocol/index.ts';

/** What is to be done. */
export interface JobRequest {
  /** Which handler does it; unique over all slices: `rooms/purge`. */
  readonly kind: string;
  /**
   * Names what it is done for. There is never more than one job of a kind and key: ordered again while it waits, it
   * stays as it is; while it runs, it runs once more afterwards. Without a key every order is a job.
   */
  readonly key?: string;
  readonly payload: JsonValue;
  /** Not before this time, in milliseconds since the epoch. */
  readonly runAt: number;
  /** A job of this kind and key that waits takes on the new payload and time. */
  readonly replace?: boolean;
}

/**
 * `waiting` to run (or to run again), or running; `done` and kept for whoever asks how it went; `failed` too often
 * and given up.
 */
export type JobState = 'waiting' | 'done' | 'failed';

/** A job as administrators see it. Times in milliseconds since the epoch. */
export interface Job {
  readonly id: number;
  readonly kind: string;
  readonly key: string | null;
  readonly payload: JsonValue;
  readonly state: JobState;
  readonly running: boolean;
  readonly runAt: number;
  readonly createdAt: number;
  /** How often it was begun. */
  readonly attempts: number;
  readonly finishedAt: number | null;
  /** What the handler returned. */
  readonly result: JsonValue | null;
  /** What the last attempt failed with. */
  readonly error: string | null;
}

/** What a handler is given for one attempt. */
export interface JobAttempt<P extends JsonValue> {
  readonly id: number;
  readonly key: string | null;
  readonly payload: P;
  /** 1 for the first. */
  readonly attempt: number;
  /** Aborts when the server stops; the job then runs again after the next start. */
  readonly signal: AbortSignal;
  /** Replaces the payload, so that another attempt goes on from here. */
  progress(payload: P): Promise<void>;
}

/** How a kind of job is done. */
export interface JobHandler<P extends JsonValue> {
  /**
   * Does it. May be called again for what it did before (a crash, a lost lease), so that doing it twice must be the
   * same as once. What it returns is kept as the result. When it rejects, it is tried again later.
   */
  run(attempt: JobAttempt<P>): Promise<JsonValue | undefined> | Promise<void>;
  /** How many of this kind run at the same time; by default as many as may run at all. */
  readonly parallel?: number;
  /** After how many attempts it is given up; by default 20. */
  readonly maxAttempts?: number;
  /** Milliseconds to wait after the attempt of this number failed; by default from a second, doubling to an hour. */
  readonly backoff?: (attempt: number) => number;
  /** Milliseconds for which a job that is done can still be listed; by default none. */
  readonly keep?: number;
}
