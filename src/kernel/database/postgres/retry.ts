import { sleep, systemClock } from '../../clock.ts';
import { randomFraction, systemRandomness } from '../../randomness.ts';
import { Conflict, Disconnected } from './errors.ts';

/**
 * How often to try in all, and the longest first wait in milliseconds; each wait is longer than the one before. After
 * a lost connection they add up to some six seconds, enough for a server to restart. After a conflict they are
 * random, so that those who met do not meet again.
 */
const policies = {
  conflict: { attempts: 12, wait: (failures: number) => randomFraction(systemRandomness) * 2 ** failures },
  disconnected: { attempts: 8, wait: (failures: number) => 25 * 2 ** failures },
};

/** An attempt that failed, and whether nothing of it can have taken effect. */
export class Undone extends Error {
  readonly error: unknown;
  readonly reason: Error;

  /** `reason` decides whether another attempt makes sense; `error` is what the caller gets when it does not. */
  constructor(reason: Error, error: unknown) {
    super(reason.message);
    this.reason = reason;
    this.error = error;
  }
}

/**
 * Runs `attempt` again while it rejects with `Undone` because of a conflict or a lost connection. The waits are for
 * others at the database to be done, which takes real time, whatever clock the server has.
 */
export async function retrying<T>(attempt: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt();
    } catch (failure) {
      if (!(failure instanceof Undone)) throw failure;
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
