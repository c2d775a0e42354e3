import type { Clock, Timer } from '../clock.ts';
import type { Metrics } from '../observability/index.ts';
import { Autotuning, autotuningInterval, memoryInUse } from './autotuning.ts';
import { maxCacheBytes } from './budget.ts';
import { Cache, type CacheBounds, type CacheSettings, maxBytesOf } from './cache.ts';
import { type CachesConfig, cacheFactor } from './config.ts';

export interface CacheOptions<K, V> extends CacheBounds<K, V> {
  /** Whether the cache keeps its size whatever the cache factors are, and keeps unused entries. */
  readonly fixed?: boolean;
}

/** Milliseconds between two removals of expired entries. */
const sweepInterval = 60_000;

/**
 * All caches of the process: creates them, resizes them at run time, removes expired entries and exposes their
 * metrics. Together they request at most `maxCacheBytes`.
 */
export class CacheRegistry {
  readonly #clock: Clock;
  readonly #caches = new Map<string, { cache: AnyCache; fixed: boolean }>();
  readonly #memoryInUse: () => number;
  /** Monotonic time of the last tick in milliseconds, which all caches share. */
  readonly #time: { now: number };
  /** Sum of the maximum bytes of all caches at factor 1. */
  #requestedBytes = 0;
  #config: CachesConfig;
  readonly #autotuning: Autotuning | undefined;
  #timer: Timer | undefined;

  /** @param measure returns the bytes of memory in use by the process */
  constructor(clock: Clock, config: CachesConfig, metrics?: Metrics, measure = memoryInUse) {
    this.#clock = clock;
    this.#time = { now: clock.monotonic() };
    this.#config = config;
    this.#autotuning = Autotuning.of(config);
    this.#memoryInUse = measure;
    if (metrics) this.#exposeAsMetrics(metrics);
    this.#scheduleTick(0);
  }

  /**
   * Creates a cache.
   * @param name unique, for metrics and `caches.per_cache_factors`
   * @throws Error when a cache of this name exists, or the caches request more than `maxCacheBytes`
   */
  create<K extends NonNullable<unknown>, V extends NonNullable<unknown> | null>(
    name: string,
    { fixed = false, ...bounds }: CacheOptions<K, V>,
  ): Cache<K, V> {
    if (this.#caches.has(name)) throw new Error(`There is already a cache named ${name}`);
    this.#requestedBytes += maxBytesOf(bounds);
    if (this.#requestedBytes > maxCacheBytes)
      throw new Error(`The cache ${name} does not fit into the budget of all caches`);
    const cache = new Cache<K, V>(name, bounds, this.#settings(name, fixed), this.#time);
    this.#caches.set(name, { cache, fixed });
    return cache;
  }

  /** Returns the names of all caches. */
  get names(): string[] {
    return [...this.#caches.keys()];
  }

  /** Applies new factors and a new lifetime to all caches that are not fixed. */
  configure(config: CachesConfig): void {
    this.#config = config;
    for (const [name, { cache, fixed }] of this.#caches) {
      if (!fixed) cache.configure(this.#settings(name, fixed));
    }
  }

  /** Cancels the timer. */
  close(): void {
    this.#timer?.cancel();
  }

  #settings(name: string, fixed: boolean): CacheSettings {
    if (fixed) return { factor: 1, ttl: undefined };
    const { expire_caches, cache_entry_ttl } = this.#config.caches;
    return { factor: cacheFactor(this.#config, name), ttl: expire_caches ? cache_entry_ttl : undefined };
  }

  /** @param elapsed milliseconds since expired entries were removed */
  #scheduleTick(elapsed: number): void {
    this.#timer = this.#clock.setTimer(autotuningInterval, () => {
      const now = this.#clock.monotonic();
      this.#time.now = now;
      const sweeps = elapsed + autotuningInterval >= sweepInterval;
      if (sweeps) for (const { cache } of this.#caches.values()) cache.dropExpired();
      if (this.#autotuning) {
        const shrinkable = [...this.#caches.values()].filter(({ fixed }) => !fixed).map(({ cache }) => cache);
        this.#autotuning.check(this.#memoryInUse(), now, shrinkable);
      }
      this.#scheduleTick(sweeps ? 0 : elapsed + autotuningInterval);
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
  | 'name'
  | 'size'
  | 'capacity'
  | 'bytes'
  | 'maxBytes'
  | 'hits'
  | 'misses'
  | 'evictions'
  | 'configure'
  | 'dropExpired'
  | 'dropOldest'
>;

const metricsOfCaches: readonly { name: string; help: string; read: (cache: AnyCache) => number }[] = [
  { name: 'server_cache_size', help: 'Entries in the cache', read: (cache) => cache.size },
  { name: 'server_cache_max_size', help: 'Maximum number of entries', read: (cache) => cache.capacity },
  { name: 'server_cache_bytes', help: 'Estimated bytes of the entries', read: (cache) => cache.bytes },
  {
    name: 'server_cache_max_bytes',
    help: 'Maximum estimated bytes of the entries',
    read: (cache) => cache.maxBytes,
  },
  { name: 'server_cache_hits', help: 'Lookups that found an entry', read: (cache) => cache.hits },
  { name: 'server_cache_misses', help: 'Lookups that found no entry', read: (cache) => cache.misses },
  {
    name: 'server_cache_evictions',
    help: 'Entries evicted for space or age',
    read: (cache) => cache.evictions,
  },
];
