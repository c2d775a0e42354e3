/**
 * Why a task has no result.
 * - `busy`: too many tasks wait already;
 * - `crashed`: the process ended during the task, or was killed because it sent an invalid message;
 * - `too-slow`: the process was killed because the task exceeded its timeout;
 * - `unavailable`: no process could start or prepare, for example because a library is missing;
 * - `stopped`: the server is stopping.
 */
export type FailureReason = 'busy' | 'crashed' | 'too-slow' | 'unavailable' | 'stopped';

/** A task without a result. Problems that the task itself reports are results, not failures. */
export class TaskFailure extends Error {
  override readonly name = 'TaskFailure';
  readonly reason: FailureReason;

  constructor(reason: FailureReason, detail = '') {
    super(`The task was not done: ${reason}${detail && ` (${detail})`}`);
    this.reason = reason;
  }
}
