import type { Clock, Timer } from '../clock.ts';
import type { Metrics } from '../observability/index.ts';
import { Autotuning, autotuningInterval, memoryInUse } from './autotuning.ts';
import { Cache, type CacheSettings } from './cache.ts';
import { type CachesConfig, cacheFactor } from './config.ts';

export interface CacheOptions {
  /** Entries at factor 1. */
  readonly size: number;
  /** For caches whose size must not depend on factors, or whose entries must not expire. */
  readonly fixed?: boolean;
}

/** How often entries whose time is over are looked for, in milliseconds. */
const sweepInterval = 60_000;

/** All caches of the process: makes them, resizes them at run time and shows how they do. */
export class CacheRegistry {
  readonly #clock: Clock;
  readonly #caches = new Map<string, { cache: AnyCache; fixed: boolean }>();
  readonly #memoryInUse: () => number;
  #config: CachesConfig;
  readonly #autotuning: Autotuning | undefined;
  #sweep: Timer | undefined;
  #tuning: Timer | undefined;

  /** @param measure the memory in use by the whole program, in bytes */
  constructor(clock: Clock, config: CachesConfig, metrics?: Metrics, measure = memoryInUse) {
    this.#clock = clock;
    this.#config = config;
    this.#autotuning = Autotuning.of(config);
    this.#memoryInUse = measure;
    if (metrics) this.#show(metrics);
    this.#scheduleSweep();
    if (this.#autotuning) this.#scheduleTuning();
  }

  /** Makes a cache. @param name unique, for metrics and `caches.per_cache_factors` */
  create<K extends NonNullable<unknown>, V extends NonNullable<unknown> | null>(
    name: string,
    { size, fixed = false }: CacheOptions,
  ): Cache<K, V> {
    if (this.#caches.has(name)) throw new Error(`There is a cache named ${name} already`);
    const cache = new Cache<K, V>(name, size, this.#settings(name, fixed), () => this.#clock.monotonic());
    this.#caches.set(name, { cache, fixed });
    return cache;
  }

  /** Applies other factors and another lifetime to every cache. */
  configure(config: CachesConfig): void {
    this.#config = config;
    for (const [name, { cache, fixed }] of this.#caches) {
      if (!fixed) cache.configure(this.#settings(name, fixed));
    }
  }

  /** Ends the sweeping and tuning. */
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
      this.#autotuning?.look(this.#memoryInUse(), this.#clock.monotonic(), shrinkable);
      this.#scheduleTuning();
    });
  }

  #show(metrics: Metrics): void {
    const caches = this.#caches;
    for (const { name, help, read } of shown) {
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

/** The part of a cache that does not depend on what it holds. */
type AnyCache = Pick<
  Cache<string, string>,
  'name' | 'size' | 'capacity' | 'hits' | 'misses' | 'evictions' | 'configure' | 'dropStale' | 'dropOldest'
>;

const shown: readonly { name: string; help: string; read: (cache: AnyCache) => number }[] = [
  { name: 'server_cache_size', help: 'Entries in the cache', read: (cache) => cache.size },
  { name: 'server_cache_max_size', help: 'Most entries the cache keeps', read: (cache) => cache.capacity },
  { name: 'server_cache_hits', help: 'Entries found', read: (cache) => cache.hits },
  { name: 'server_cache_misses', help: 'Entries not found', read: (cache) => cache.misses },
  {
    name: 'server_cache_evictions',
    help: 'Entries dropped for space or age',
    read: (cache) => cache.evictions,
  },
];
