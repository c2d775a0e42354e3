import { CacheRegistry, cachesSection } from '../../../src/kernel/caches/index.ts';
import type { Clock } from '../../../src/kernel/clock.ts';
import { sectionDefaults } from '../inputs/section-defaults.ts';

/** Caches of exactly the sizes that the slices request, whose entries do not expire. */
export const plainCaches = (clock: Clock): CacheRegistry =>
  new CacheRegistry(
    clock,
    sectionDefaults(cachesSection, { caches: { global_factor: 1, expire_caches: false } }),
  );
