import type { Clock } from '../../kernel/clock.ts';
import { MatrixError } from '../../protocol/index.ts';

/**
 * Runs `work`. When it takes longer than the timeout, rejects, and aborts the signal of `work`.
 * @param timeout milliseconds
 * @throws MatrixError 504 after the timeout; the errors of `work`
 */
export async function withTimeout<T>(
  clock: Clock,
  timeout: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const timer = clock.setTimer(timeout, () => {
      reject(new MatrixError(504, 'M_UNKNOWN', 'The server did not answer in time'));
      controller.abort();
    });
    work(controller.signal)
      .then(resolve, reject)
      .finally(() => timer.cancel());
  });
}
