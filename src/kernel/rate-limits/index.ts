/** Rate limits for users and servers. */
export { addressKey } from './address-key.ts';
export { type RateLimit, type RateLimitsConfig, rateLimitsSection } from './config.ts';
export { RateLimiter } from './rate-limiter.ts';
export { ServerLimiter } from './server-limiter.ts';
export { type LimitedKind, UserSlots } from './user-slots.ts';
