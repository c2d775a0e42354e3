import { type Clock, sleep } from '../../clock.ts';
import { Conflict, Disconnected } from './errors.ts';

/** Attempts in all; the waits between them add up to some six seconds, enough for a server to restart. */
const attempts = 8;
const firstWait = { conflict: 2, disconnected: 50 };

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

/** Runs `attempt` again while it rejects with `Undone` because of a conflict or a lost connection. */
export async function retrying<T>(clock: Clock, attempt: () => Promise<T>): Promise<T> {
  for (let number = 1; ; number += 1) {
    try {
      return await attempt();
    } catch (failure) {
      if (!(failure instanceof Undone)) throw failure;
      const base = waitAfter(failure.reason);
      if (base === undefined || number >= attempts) throw failure.error;
      await sleep(clock, base * 2 ** (number - 1));
    }
  }
}

function waitAfter(reason: Error): number | undefined {
  if (reason instanceof Conflict) return firstWait.conflict;
  return reason instanceof Disconnected ? firstWait.disconnected : undefined;
}
