/**
 * - `busy`: too many tasks wait already;
 * - `crashed`: the process has ended in the middle of it;
 * - `too-slow`: it was killed, as its time was over;
 * - `unavailable`: the process could not begin, as when a library is missing;
 * - `stopped`: the server stops.
 */
export type FailureReason = 'busy' | 'crashed' | 'too-slow' | 'unavailable' | 'stopped';

/** A task that has no result. What the task itself finds wrong is a result. */
export class TaskFailure extends Error {
  override readonly name = 'TaskFailure';
  readonly reason: FailureReason;

  constructor(reason: FailureReason, detail = '') {
    super(`The task was not done: ${reason}${detail && ` (${detail})`}`);
    this.reason = reason;
  }
}
