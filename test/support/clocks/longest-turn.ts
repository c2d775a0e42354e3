/** The CPU time of some work on this thread, in milliseconds: other load on the machine does not count. */
export interface ThreadCost {
  /** The sum of all turns of the event loop. */
  readonly total: number;
  /** The longest turn, during which no other work was done. */
  readonly longest: number;
}

const now = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** Measures what this thread does until the work has ended; everything in the process counts. */
export async function threadCost(work: () => Promise<unknown>): Promise<ThreadCost> {
  let isOver = false;
  let longest = 0;
  await new Promise(setImmediate);
  const begun = now();
  let last = begun;
  const measure = () => {
    const current = now();
    longest = Math.max(longest, current - last);
    last = current;
  };
  const turn = () => {
    measure();
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  try {
    await work();
  } finally {
    isOver = true;
    await new Promise(setImmediate);
  }
  return { total: last - begun, longest };
}

/**
 * Measures work until it costs no more than allowed, up to five times: the collection of garbage and the compiler's
 * work fall on any turn. @returns the last measurement
 */
export async function cheapestCost(allowed: ThreadCost, work: () => Promise<unknown>): Promise<ThreadCost> {
  let cost = await threadCost(work);
  for (let more = 4; more > 0 && (cost.total > allowed.total || cost.longest > allowed.longest); more--) {
    cost = await threadCost(work);
  }
  return cost;
}
