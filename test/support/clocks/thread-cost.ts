import { threadTime as now, slowdown } from './slowdown.ts';

/** The CPU time of some work, in milliseconds of a machine without other load. */
export interface ThreadCost {
  /** The sum of all turns of the event loop of this thread. */
  readonly total: number;
  /** The longest turn, during which no other work was done. */
  readonly longest: number;
  /** All threads of the process: also those of the database, the garbage collector and the compiler. */
  readonly process: number;
}

/** Maximum cost of some work. The cost of all threads (`process`) is checked only if it is given. */
export type AllowedCost = Pick<ThreadCost, 'total' | 'longest'> & Partial<Pick<ThreadCost, 'process'>>;

const millisecondsOf = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1_000;

/** Measures the cost of this process until the work has ended, which includes other work of the process. */
export async function threadCost(work: () => Promise<unknown>): Promise<ThreadCost> {
  let isOver = false;
  let longest = 0;
  const slowAtFirst = slowdown();
  await new Promise(setImmediate);
  const before = process.cpuUsage();
  const startedAt = now();
  let last = startedAt;
  const turn = () => {
    const current = now();
    longest = Math.max(longest, current - last);
    last = current;
    // Runs once in each turn, and lets the event loop wait between turns.
    if (!isOver) setImmediate(turn).unref();
  };
  setImmediate(turn).unref();
  try {
    await work();
  } finally {
    isOver = true;
    await new Promise(setImmediate);
  }
  const ofProcess = millisecondsOf(process.cpuUsage(before));
  const slow = Math.max(slowAtFirst, slowdown());
  return { total: (last - startedAt) / slow, longest: longest / slow, process: ofProcess / slow };
}

/**
 * Measures work until it costs no more than allowed, at most five times, because garbage collection and compilation can
 * make any turn longer. @returns the last measurement
 */
export async function costAfterRetries(
  allowed: AllowedCost,
  work: () => Promise<unknown>,
): Promise<ThreadCost> {
  let cost = await threadCost(work);
  for (let more = 4; more > 0 && isAbove(cost, allowed); more--) cost = await threadCost(work);
  return cost;
}

export const isAbove = (cost: ThreadCost, allowed: AllowedCost): boolean =>
  cost.total > allowed.total ||
  cost.longest > allowed.longest ||
  cost.process > (allowed.process ?? Number.POSITIVE_INFINITY);
