import { type ManualClock, manualClock } from './manual-clock.ts';

/** A clock that advances by a second whenever it is read, so that every time slice is over at each check. */
export interface FastClock extends ManualClock {
  /** Number of reads of `monotonic`; at each of them other work could have run. */
  readonly reads: number;
}

export function fastClock(): FastClock {
  let reads = 0;
  return {
    ...manualClock(),
    monotonic: () => ++reads * 1_000,
    get reads() {
      return reads;
    },
  };
}

/** Returns how often the clock was read during `work`. */
export async function clockReadsDuring(clock: FastClock, work: () => Promise<unknown>): Promise<number> {
  const before = clock.reads;
  await work();
  return clock.reads - before;
}
