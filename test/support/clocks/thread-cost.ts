import { noteSpeed, slowdown, threadTime } from './slowdown.ts';

/** The CPU time of some work, in milliseconds; divided by `slowdown` in the results of `threadCost`. */
export interface ThreadCost {
  /** The sum of all turns of the event loop of this thread. */
  readonly total: number;
  /** The longest turn of the event loop: other work waits for its end. */
  readonly longest: number;
  /** All threads of the process, including the threads of the database, the garbage collector and the compiler. */
  readonly process: number;
}

/** Maximum cost of some work. The cost of all threads (`process`) is checked only if it is given. */
export type AllowedCost = Pick<ThreadCost, 'total' | 'longest'> & Partial<Pick<ThreadCost, 'process'>>;

const millisecondsOf = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1_000;

/**
 * Measures the cost of this process until the work has ended, other work of the process included. Divides the measured
 * times by `slowdown`, which tells how much other load of the machine makes the work slower.
 */
export async function threadCost(work: () => Promise<unknown>): Promise<ThreadCost> {
  const slowAtFirst = slowdown();
  const { total, longest, process } = await costAsMeasured(work);
  const slow = Math.max(slowAtFirst, slowdown());
  return { total: total / slow, longest: longest / slow, process: process / slow };
}

/**
 * Measures like `threadCost`, but returns the measured times without a division: they are at least as long as the
 * corrected times. Does not call `slowdown`, because this would take longer than most of the work that is measured.
 */
export async function costAsMeasured(work: () => Promise<unknown>): Promise<ThreadCost> {
  let isOver = false;
  let longest = 0;
  // Later calls of `slowdown` compare the speed with the highest one so far.
  noteSpeed();
  await new Promise(setImmediate);
  const usageBefore = process.cpuUsage();
  const startedAt = threadTime();
  let last = startedAt;
  const turn = () => {
    const current = threadTime();
    longest = Math.max(longest, current - last);
    last = current;
    // Runs once in each turn. An immediate with `ref` would keep the event loop from waiting for input.
    if (!isOver) setImmediate(turn).unref();
  };
  setImmediate(turn).unref();
  try {
    await work();
  } finally {
    isOver = true;
    await new Promise(setImmediate);
  }
  return { total: last - startedAt, longest, process: millisecondsOf(process.cpuUsage(usageBefore)) };
}

/**
 * Measures work until it costs no more than allowed, at most six times, because garbage collection and compilation can
 * make any turn longer.
 * @returns the lowest total, the lowest longest turn and the lowest process time of all measurements
 */
export async function costAfterRetries(
  allowed: AllowedCost,
  work: () => Promise<unknown>,
): Promise<ThreadCost> {
  let cost = await costAsMeasured(work);
  for (let attempts = 5; attempts > 0 && exceeds(cost, allowed); attempts--)
    cost = lowest(cost, await threadCost(work));
  return cost;
}

/** Returns the lower of both costs, field by field. */
export const lowest = (one: ThreadCost, other: ThreadCost): ThreadCost => ({
  total: Math.min(one.total, other.total),
  longest: Math.min(one.longest, other.longest),
  process: Math.min(one.process, other.process),
});

/** Whether a cost exceeds what is allowed. */
export const exceeds = (cost: ThreadCost, allowed: AllowedCost): boolean =>
  cost.total > allowed.total ||
  cost.longest > allowed.longest ||
  cost.process > (allowed.process ?? Number.POSITIVE_INFINITY);
