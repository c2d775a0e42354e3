import { slowdown, threadTime } from './slowdown.ts';

/**
 * Returns the milliseconds of CPU time that this thread spends in `work`, of a machine without other load.
 */
export function cpuTime(work: () => void): number {
  const slowAtFirst = slowdown();
  const before = threadTime();
  work();
  const time = threadTime() - before;
  return time / Math.max(slowAtFirst, slowdown());
}
