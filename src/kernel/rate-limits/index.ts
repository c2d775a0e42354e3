/** Limits on how often something may be done. */
export { type RateLimit, type RateLimitsConfig, rateLimitsSection } from './config.ts';
export { RateLimiter } from './rate-limiter.ts';
export { ServerLimiter } from './server-limiter.ts';
