/** Limits on how often something may be done. */
export { type RateLimit, RateLimiter } from './rate-limiter.ts';
