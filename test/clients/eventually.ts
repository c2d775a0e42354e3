import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds between the first two checks. */
const minPause = 10;

/** Maximum milliseconds between two checks. A check costs the server time, too. */
const maxPause = 100;

/**
 * Repeats `check` until it returns something other than `undefined` and `false`.
 * @param what completes the error message "timed out waiting for …"
 * @param timeout milliseconds
 * @throws Error when `check` has returned nothing within the timeout
 */
export async function eventually<T>(
  what: string,
  check: () => T | undefined | false | Promise<T | undefined | false>,
  timeout = 120_000,
): Promise<T> {
  const deadline = performance.now() + timeout;
  for (let pause = minPause; ; pause = Math.min(pause * 1.5, maxPause)) {
    const result = await check();
    if (result !== undefined && result !== false) return result;
    if (performance.now() > deadline) throw new Error(`timed out waiting for ${what}`);
    await sleep(pause);
  }
}

/**
 * Resolves or rejects as `promise` does.
 * @param what completes the error message "timed out waiting for …"
 * @param timeout milliseconds
 * @throws Error when the promise is still pending after the timeout
 */
export async function within<T>(what: string, promise: Promise<T>, timeout = 120_000): Promise<T> {
  const done = new AbortController();
  const timedOut = sleep(timeout, undefined, { signal: done.signal }).then(() => {
    throw new Error(`timed out waiting for ${what}`);
  });
  try {
    return await Promise.race([promise, timedOut]);
  } finally {
    timedOut.catch(() => undefined);
    done.abort();
  }
}
