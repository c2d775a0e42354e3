const WARM_UP = 20_000;
const ROUNDS = 7;
const CALLS = 20_000;

/**
 * Returns microseconds per call: the best of several rounds, so that other work on the machine has little
 * effect.
 */
export function microseconds(work: () => unknown): number {
  for (let i = 0; i < WARM_UP; i++) work();
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    for (let i = 0; i < CALLS; i++) work();
    best = Math.min(best, performance.now() - start);
  }
  return (best / CALLS) * 1000;
}

/** Prints one line: the time per call, and its ratio to the baseline. */
export function report(name: string, micros: number, baseline: number): void {
  const ratio = (micros / baseline).toFixed(2);
  console.log(`${name.padEnd(44)} ${micros.toFixed(2).padStart(8)} us ${ratio.padStart(7)} x`);
}
