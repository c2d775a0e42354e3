import { slowdown, threadTime } from './slowdown.ts';

/**
 * Runs `work` and returns the milliseconds of CPU time that it would take on a machine without other load.
 */
export function cpuTime(work: () => void): number {
  const slowAtFirst = slowdown();
  const before = threadTime();
  work();
  const time = threadTime() - before;
  return time / Math.max(slowAtFirst, slowdown());
}
