import { type Clock, systemClock } from '../../../src/kernel/clock.ts';

/** Milliseconds that the answer to a leave waits until other servers have accepted the leave. */
const leaveTimeout = 500;

/** Shortest delay, in milliseconds, of the other timeouts: a busy machine may exceed them. */
const shortestTimeout = 10_000;

/** The clock of the machine without its timeouts: a timer for ten seconds or more, or for half a second, never runs. */
export const unhurriedClock: Clock = {
  ...systemClock,
  setTimer: (delay, callback) =>
    delay >= shortestTimeout || delay === leaveTimeout
      ? { cancel: () => undefined }
      : systemClock.setTimer(delay, callback),
};
