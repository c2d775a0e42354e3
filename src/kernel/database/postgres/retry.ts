import { sleep, systemClock } from '../../clock.ts';
import { randomFraction, systemRandomness } from '../../randomness.ts';
import { Conflict, Disconnected } from './errors.ts';

/**
 * Maximum number of attempts, and the delay in milliseconds after a number of failures. After a lost
 * connection the delays add up to about six seconds, enough for a restart of the server. After a conflict
 * they are random, so that the same transactions do not conflict again.
 */
const policies = {
  conflict: { attempts: 12, wait: (failures: number) => randomFraction(systemRandomness) * 2 ** failures },
  disconnected: { attempts: 8, wait: (failures: number) => 25 * 2 ** failures },
};

/** A failed attempt that certainly had no effect. */
export class FailedWithoutEffect extends Error {
  readonly error: unknown;
  readonly reason: Error;

  /**
   * @param reason decides whether to retry
   * @param error is passed to the caller when there is no retry
   */
  constructor(reason: Error, error: unknown) {
    super(reason.message);
    this.reason = reason;
    this.error = error;
  }
}

/**
 * Repeats `attempt` while it rejects with `FailedWithoutEffect` because of a conflict or a lost connection. The delays
 * use the system clock, because they wait for other users of the database, whatever clock the server has.
 */
export async function retrying<T>(attempt: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt();
    } catch (failure) {
      if (!(failure instanceof FailedWithoutEffect)) throw failure;
      const policy = policyFor(failure.reason);
      if (!policy || failures >= policy.attempts) throw failure.error;
      await sleep(systemClock, policy.wait(failures));
    }
  }
}

function policyFor(reason: Error) {
  if (reason instanceof Conflict) return policies.conflict;
  return reason instanceof Disconnected ? policies.disconnected : undefined;
}
