import type { JsonValue } from '../../protocol/index.ts';

/** Input of a job. */
export interface ModuleJob {
  readonly payload: JsonValue;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** Aborts when the server stops. A job that throws then runs again after the next start; one that returns is done. */
  readonly signal: AbortSignal;
}

/** The input of a job, and the time at which it runs. */
export interface JobOptions {
  /** `null` when absent. */
  readonly payload?: JsonValue;
  /**
   * Identifies the work of the job: at most one job with this key waits. A job that is scheduled again while
   * it waits stays as it is.
   */
  readonly key?: string;
  /** Milliseconds from now; 0 when absent. */
  readonly delay?: number;
}

/**
 * Work in the background, stored in the database: it runs at least once, also after a crash, so it must be idempotent. One
 * job of a name runs at a time, at most 60 seconds. A failure is retried after a backoff that doubles up to one hour, until
 * the job has been attempted 20 times.
 */
export interface JobAccess {
  /**
   * Registers the function that runs the jobs of a name, which no other module may use. Only while the module is being
   * loaded.
   */
  register(name: string, run: (job: ModuleJob) => void | Promise<void>): void;
  /** Runs a function at an interval of milliseconds, at least 1,000. Only while the module is being loaded. */
  repeat(name: string, interval: number, run: (job: ModuleJob) => void | Promise<void>): void;
  /** Schedules a job. */
  schedule(name: string, options?: JobOptions): Promise<void>;
}

/** A mail to send. */
export interface ModuleMail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** The HTML form of the text; by default the text. */
  readonly html?: string;
}

/** Mail through the mail server of the configuration. */
export interface MailAccess {
  /** Whether the server can send mail. */
  readonly isEnabled: boolean;
  /**
   * Schedules a mail, which is sent in the background and retried until the mail server accepts it.
   * @throws Error when the server has no mail server (`email`)
   */
  send(mail: ModuleMail): Promise<void>;
}
