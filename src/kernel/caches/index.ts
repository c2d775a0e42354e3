/** Bounded memory of what was read or computed before. */
export { Cache, type CacheSettings } from './cache.ts';
export { type CacheFactors, type CacheOptions, CacheRegistry } from './registry.ts';
