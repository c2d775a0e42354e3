import { type Clock, systemClock } from '../../../src/kernel/clock.ts';

/** Milliseconds after which a leave is answered that other servers have not accepted. */
const leaveTimeout = 500;

/** Shortest delay in milliseconds of other timeouts that a busy machine may exceed. */
const shortestTimeout = 10_000;

/** The clock of the machine without its timeouts: a timer for ten seconds or more, or for half a second, never runs. */
export const unhurriedClock: Clock = {
  ...systemClock,
  setTimer: (delay, callback) =>
    delay >= shortestTimeout || delay === leaveTimeout
      ? { cancel: () => undefined }
      : systemClock.setTimer(delay, callback),
};
