import type { Clock } from '../clock.ts';
import type { SamplerSettings } from '../observability/index.ts';
import { type Randomness, randomFraction } from '../randomness.ts';

/** Decides whether a new trace is recorded. */
export type Sampler = () => boolean;

/** Returns the function that decides about new traces. */
export function samplerOf(settings: SamplerSettings, clock: Clock, randomness: Randomness): Sampler {
  if (settings.type === 'const') return () => settings.records;
  if (settings.type === 'probabilistic') {
    const { probability } = settings;
    return () => probability > 0 && randomFraction(randomness) < probability;
  }
  return rateLimited(settings.perSecond, clock);
}

/**
 * Records on average at most `perSecond` traces a second. A burst has at most `perSecond` traces, or one trace if
 * `perSecond` is below 1.
 */
function rateLimited(perSecond: number, clock: Clock): Sampler {
  const maximum = Math.max(1, perSecond);
  let credit = perSecond > 0 ? maximum : 0;
  let creditedAt = clock.monotonic();
  return () => {
    const now = clock.monotonic();
    credit = Math.min(maximum, credit + ((now - creditedAt) / 1000) * perSecond);
    creditedAt = now;
    if (credit < 1) return false;
    credit -= 1;
    return true;
  };
}
