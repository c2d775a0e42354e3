/**
 * Returns the milliseconds of CPU time that this thread spends in `work`; other load on the machine does not
 * count.
 */
export function cpuTime(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
