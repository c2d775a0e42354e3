import type { Clock, Timer } from '../clock.ts';
import type { Metrics } from '../observability/index.ts';
import { Autotuning, autotuningInterval, memoryInUse } from './autotuning.ts';
import { Cache, type CacheSettings } from './cache.ts';
import { type CachesConfig, cacheFactor } from './config.ts';

export interface CacheOptions {
  /** Maximum number of entries at factor 1. */
  readonly size: number;
  /** For caches whose size must not depend on factors, or whose entries must not expire. */
  readonly fixed?: boolean;
}

/** Milliseconds between two removals of expired entries. */
const sweepInterval = 60_000;

/** All caches of the process: creates them, resizes them at run time and exposes their metrics. */
export class CacheRegistry {
  readonly #clock: Clock;
  readonly #caches = new Map<string, { cache: AnyCache; fixed: boolean }>();
  readonly #memoryInUse: () => number;
  #config: CachesConfig;
  readonly #autotuning: Autotuning | undefined;
  #sweep: Timer | undefined;
  #tuning: Timer | undefined;

  /** @param measure returns the bytes of memory in use by the process */
  constructor(clock: Clock, config: CachesConfig, metrics?: Metrics, measure = memoryInUse) {
    this.#clock = clock;
    this.#config = config;
    this.#autotuning = Autotuning.of(config);
    this.#memoryInUse = measure;
    if (metrics) this.#exposeAsMetrics(metrics);
    this.#scheduleSweep();
    if (this.#autotuning) this.#scheduleTuning();
  }

  /**
   * Creates a cache.
   * @param name unique, for metrics and `caches.per_cache_factors`
   * @throws Error when a cache of this name exists
   */
  create<K extends NonNullable<unknown>, V extends NonNullable<unknown> | null>(
    name: string,
    { size, fixed = false }: CacheOptions,
  ): Cache<K, V> {
    if (this.#caches.has(name)) throw new Error(`There is already a cache named ${name}`);
    const cache = new Cache<K, V>(name, size, this.#settings(name, fixed), () => this.#clock.monotonic());
    this.#caches.set(name, { cache, fixed });
    return cache;
  }

  /** Applies new factors and a new lifetime to all caches that are not fixed. */
  configure(config: CachesConfig): void {
    this.#config = config;
    for (const [name, { cache, fixed }] of this.#caches) {
      if (!fixed) cache.configure(this.#settings(name, fixed));
    }
  }

  /** Cancels the timers. */
  close(): void {
    this.#sweep?.cancel();
    this.#tuning?.cancel();
  }

  #settings(name: string, fixed: boolean): CacheSettings {
    if (fixed) return { factor: 1, ttl: undefined };
    const { expire_caches, cache_entry_ttl } = this.#config.caches;
    return {
      factor: cacheFactor(this.#config, name),
      ttl: expire_caches ? cache_entry_ttl : undefined,
      tracksUse: this.#autotuning !== undefined,
    };
  }

  #scheduleSweep(): void {
    this.#sweep = this.#clock.setTimer(sweepInterval, () => {
      for (const { cache } of this.#caches.values()) cache.dropStale();
      this.#scheduleSweep();
    });
  }

  #scheduleTuning(): void {
    this.#tuning = this.#clock.setTimer(autotuningInterval, () => {
      const shrinkable = [...this.#caches.values()].filter(({ fixed }) => !fixed).map(({ cache }) => cache);
      this.#autotuning?.check(this.#memoryInUse(), this.#clock.monotonic(), shrinkable);
      this.#scheduleTuning();
    });
  }

  #exposeAsMetrics(metrics: Metrics): void {
    const caches = this.#caches;
    for (const { name, help, read } of metricsOfCaches) {
      metrics.gauge({
        name,
        help,
        labelNames: ['name'],
        collect() {
          for (const { cache } of caches.values()) this.set({ name: cache.name }, read(cache));
        },
      });
    }
  }
}

/** The members of a cache that do not depend on the types of its entries. */
type AnyCache = Pick<
  Cache<string, string>,
  'name' | 'size' | 'capacity' | 'hits' | 'misses' | 'evictions' | 'configure' | 'dropStale' | 'dropOldest'
>;

const metricsOfCaches: readonly { name: string; help: string; read: (cache: AnyCache) => number }[] = [
  { name: 'server_cache_size', help: 'Entries in the cache', read: (cache) => cache.size },
  { name: 'server_cache_max_size', help: 'Maximum number of entries', read: (cache) => cache.capacity },
  { name: 'server_cache_hits', help: 'Lookups that found an entry', read: (cache) => cache.hits },
  { name: 'server_cache_misses', help: 'Lookups that found no entry', read: (cache) => cache.misses },
  {
    name: 'server_cache_evictions',
    help: 'Entries evicted for space or age',
    read: (cache) => cache.evictions,
  },
];
