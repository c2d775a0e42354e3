import type { Clock } from '../../../kernel/clock.ts';

/**
 * Does what ends when its signal aborts: after a time, or with `signal`.
 * @param time milliseconds
 */
export async function withinTime<T>(
  clock: Clock,
  time: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const timer = clock.setTimer(time, () => over.abort());
  try {
    return await work(signal ? AbortSignal.any([over.signal, signal]) : over.signal);
  } finally {
    timer.cancel();
  }
}
