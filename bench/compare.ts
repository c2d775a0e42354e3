/** An operation of the server, and the work that any implementation of it needs. */
export interface Comparison {
  readonly name: string;
  /** Number of items per round. */
  readonly count: number;
  /** Name of the items. */
  readonly unit: string;
  /** Runs one round of the operation. */
  readonly work: () => Promise<unknown>;
  /** Runs one round of the minimal work. The operation is compared with it. */
  readonly plain: () => Promise<unknown>;
  /** Runs before each round; not measured. */
  readonly prepare?: () => Promise<unknown>;
}

/** Number of rounds of `work`, and of `plain`. */
const rounds = 7;

/**
 * Prints the fastest of several rounds of `work` and of `plain`. The rounds alternate, so that other work on the
 * machine has little effect.
 */
export async function compare({ name, count, unit, work, plain, prepare }: Comparison): Promise<void> {
  const best = { work: Number.POSITIVE_INFINITY, plain: Number.POSITIVE_INFINITY };
  for (let round = 0; round < rounds; round++) {
    await prepare?.();
    best.work = Math.min(best.work, await milliseconds(work));
    best.plain = Math.min(best.plain, await milliseconds(plain));
  }
  const cells = [
    `${best.work.toFixed(1)} ms`.padStart(12),
    `${Math.round((count / best.work) * 1_000)} ${unit}/s`.padStart(20),
    `${(best.work / best.plain).toFixed(2)} x plain`.padStart(16),
  ];
  console.log(name.padEnd(44), ...cells);
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
