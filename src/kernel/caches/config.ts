import {
  boolean,
  duration,
  mapOf,
  nullable,
  number,
  object,
  option,
  type SectionType,
  section,
  size,
} from '../config/index.ts';

const autotuning = object({
  max_cache_memory_usage: option(nullable(size()), {
    description:
      'Entries are evicted when the objects and buffers of the process take more memory than this, until the target is reached.',
    default: null,
    unit: 'bytes',
  }),
  target_cache_memory_usage: option(nullable(size()), {
    description: 'The memory use at which eviction stops.',
    default: null,
    unit: 'bytes',
  }),
  min_cache_ttl: option(nullable(duration()), {
    description: 'Entries used more recently than this are kept even above the limit.',
    default: null,
  }),
});

/** Sizes and lifetimes of caches. */
export const cachesSection = section({
  title: 'Caches',
  description:
    'How much is cached in memory. The factors can be changed while the server runs: edit the file and send the process SIGHUP.',
  options: {
    event_cache_size: option(size(), {
      description:
        'How many events are cached in memory, before `caches.global_factor` multiplies it. Their bytes are bounded as well.',
      default: '10K',
      unit: 'events',
    }),
    caches: option(
      object({
        global_factor: option(number({ minimum: 0 }), {
          description:
            'Multiplies the maximum entries and bytes of every cache, and of the pool of HTTP connections. The environment variable `SERVER_CACHE_FACTOR` overrides it.',
          default: 0.5,
          reloadable: true,
        }),
        per_cache_factors: option(mapOf(number({ minimum: 0 })), {
          description:
            'Factors of single caches by name, in place of the global one. `SERVER_CACHE_FACTOR_` followed by the name in capitals overrides them. Characters other than letters and digits may be left out of a name.',
          default: {},
          reloadable: true,
        }),
        expire_caches: option(boolean(), {
          description: 'Evicts entries that have not been used for `cache_entry_ttl`.',
          default: true,
        }),
        cache_entry_ttl: option(duration(), {
          description: 'How long an entry may be idle before it is evicted.',
          default: '30m',
          deprecatedNames: ['caches.expiry_time'],
        }),
        sync_response_cache_duration: option(duration(), {
          description:
            'How long the response to a sync request is cached for a repeated request. 0 caches none.',
          default: '2m',
          changed: ['1.62.0: the default was 0 before.'],
        }),
        cache_autotuning: option(nullable(autotuning), {
          description: 'Evicts entries by measured memory use. All three options must be given.',
          default: null,
        }),
      }),
      { description: 'Factors and lifetimes of caches.' },
    ),
  },
  rules: [
    ({ caches: { cache_autotuning: tuning } }, view) => {
      if (tuning === null) return;
      const missing = Object.entries(tuning).flatMap(([name, value]) => (value === null ? [name] : []));
      if (missing.length > 0) {
        const message = `is incomplete: ${missing.join(' and ')} must be given too`;
        view.error('caches.cache_autotuning', message);
      }
    },
  ],
});

export type CachesConfig = SectionType<typeof cachesSection>;

/** The factor that multiplies a cache's size: the one for its name if there is one, else the global one. */
export function cacheFactor({ caches }: CachesConfig, cacheName: string): number {
  const wanted = plainCacheName(cacheName);
  const found = Object.entries(caches.per_cache_factors).find(([name]) => plainCacheName(name) === wanted);
  return found === undefined ? caches.global_factor : found[1];
}

/**
 * Returns a cache name in lower case, with letters and digits only: operators may write the same name in other forms.
 */
export function plainCacheName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}
