import type { FederationClientConfig } from '../config.ts';

/**
 * How a request is retried: not at all (`none`), for some seconds because a user waits for the response (`short`), or
 * for minutes in the background (`long`).
 */
export type RetryMode = 'none' | 'short' | 'long';

type Options = FederationClientConfig['federation'];

/** Returns the maximum number of retries. */
export function retriesOf(mode: RetryMode, options: Options): number {
  if (mode === 'none') return 0;
  return mode === 'short' ? options.max_short_retries : options.max_long_retries;
}

/** Milliseconds before the first retry, and the factor that multiplies the delay for each further retry. */
const delays = { short: { first: 500, factor: 2 }, long: { first: 4_000, factor: 4 } } as const;

/**
 * Returns the milliseconds before a retry.
 * @param retry 0 for the first retry
 * @param chance a random number in [0, 1) that makes the delay up to 20 % shorter or longer
 * @param wanted delay that the server requests; the result is `undefined` when it exceeds the maximum delay
 */
export function retryDelay(
  mode: Exclude<RetryMode, 'none'>,
  retry: number,
  options: Options,
  chance: number,
  wanted = 0,
): number | undefined {
  const maxDelay = mode === 'short' ? options.max_short_retry_delay : options.max_long_retry_delay;
  if (wanted > maxDelay) return undefined;
  const { first, factor } = delays[mode];
  const delay = Math.min(first * factor ** retry, maxDelay) * (0.8 + 0.4 * chance);
  return Math.round(Math.max(Math.min(delay, maxDelay), wanted));
}
