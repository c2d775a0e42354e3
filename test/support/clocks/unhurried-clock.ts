import { type Clock, systemClock } from '../../../src/kernel/clock.ts';

/** Shortest delay in milliseconds that is a timeout, which a busy machine may exceed. */
const shortestTimeout = 10_000;

/** The clock of the machine without its timeouts: a timer for ten seconds or more never runs. */
export const unhurriedClock: Clock = {
  ...systemClock,
  setTimer: (delay, callback) =>
    delay < shortestTimeout ? systemClock.setTimer(delay, callback) : { cancel: () => undefined },
};
