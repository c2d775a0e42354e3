import { CacheRegistry, cachesSection } from '../../../src/kernel/caches/index.ts';
import type { Clock } from '../../../src/kernel/clock.ts';
import { sectionDefaults } from '../inputs/section-defaults.ts';

/**
 * Caches whose entries do not expire.
 * @param factor multiplies the sizes that the slices request
 */
export const plainCaches = (clock: Clock, factor = 1): CacheRegistry =>
  new CacheRegistry(
    clock,
    sectionDefaults(cachesSection, { caches: { global_factor: factor, expire_caches: false } }),
  );
