/** Bounded in-memory caches. */
export { Cache, type CacheSettings } from './cache.ts';
export { type CachesConfig, cachesSection } from './config.ts';
export { cacheFactorsFromEnvironment } from './environment.ts';
export { RecentlyUsed } from './recently-used.ts';
export { type CacheOptions, CacheRegistry } from './registry.ts';
