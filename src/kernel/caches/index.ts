/** Bounded in-memory caches. */
export { KiB, MiB, maxCacheBytes } from './budget.ts';
export { Cache, type CacheBounds, type CacheSettings } from './cache.ts';
export { type CachesConfig, cachesSection } from './config.ts';
export { cacheFactorsFromEnvironment } from './environment.ts';
export { type CacheOptions, CacheRegistry } from './registry.ts';
export { sizeOfJson } from './size-of-json.ts';
