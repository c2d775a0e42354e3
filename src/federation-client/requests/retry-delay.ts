import type { FederationClientConfig } from '../config.ts';

/**
 * How a request is repeated: not at all, while someone waits for the answer (`short`), or in the background (`long`).
 */
export type RetryMode = 'none' | 'short' | 'long';

type Options = FederationClientConfig['federation'];

/** How many further attempts there are. */
export function retriesOf(mode: RetryMode, options: Options): number {
  if (mode === 'none') return 0;
  return mode === 'short' ? options.max_short_retries : options.max_long_retries;
}

/** Milliseconds before the first further attempt, and by what they grow with each. */
const delays = { short: { first: 500, factor: 2 }, long: { first: 4_000, factor: 4 } } as const;

/**
 * Milliseconds to wait before a further attempt.
 * @param retry 0 for the first one
 * @param chance in [0, 1): spreads the attempts of many
 * @param wanted what the server has asked for; `undefined` comes back when that is longer than anybody waits here
 */
export function retryDelay(
  mode: Exclude<RetryMode, 'none'>,
  retry: number,
  options: Options,
  chance: number,
  wanted = 0,
): number | undefined {
  const longest = mode === 'short' ? options.max_short_retry_delay : options.max_long_retry_delay;
  if (wanted > longest) return undefined;
  const { first, factor } = delays[mode];
  const delay = Math.min(first * factor ** retry, longest) * (0.8 + 0.4 * chance);
  return Math.round(Math.max(Math.min(delay, longest), wanted));
}
