import { type Cache, type CacheRegistry, MiB, sizeOfJson } from '../../kernel/caches/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Stream } from '../../kernel/streams/index.ts';
import type { E2eeTables } from '../tables.ts';
import { unusedFallbackTypes } from './fallback-key-store.ts';
import { countKeys, type DeviceAddress } from './one-time-key-store.ts';

/** The counts of a device's keys in each sync response. */
export interface DeviceKeyCounts {
  /** Unclaimed one-time keys by algorithm. */
  readonly oneTimeKeyCounts: Readonly<Record<string, number>>;
  /** The algorithms of the fallback keys that were not claimed. */
  readonly unusedFallbackKeyTypes: readonly string[];
}

/** Maximum number of devices whose counts are cached. */
const cachedDevices = 50_000;

/**
 * The algorithm whose count is sent even when it is zero, because clients wait for this count before they upload keys.
 */
const defaultAlgorithm = 'signed_curve25519';

/** Counts the unclaimed keys of devices, and caches the counts until they change. */
export class KeyCounts {
  readonly #database: Database;
  readonly #cache: Cache<string, DeviceKeyCounts>;

  constructor(database: Database, caches: CacheRegistry, keyStream: Stream<DeviceAddress>) {
    this.#database = database;
    this.#cache = caches.create('device_key_counts', {
      size: cachedDevices,
      maxBytes: 6 * MiB,
      // The counts of a device may be large, because a client may invent an algorithm for each key.
      sizeOf: ({ oneTimeKeyCounts, unusedFallbackKeyTypes }) =>
        100 + sizeOfJson(oneTimeKeyCounts) + sizeOfJson(unusedFallbackKeyTypes as string[]),
    });
    keyStream.subscribe(({ userId, deviceId }) => this.#cache.delete(`${userId} ${deviceId}`));
  }

  /**
   * Returns the counts of unclaimed one-time keys by algorithm, and the algorithms of unused fallback keys.
   */
  get(userId: string, deviceId: string): DeviceKeyCounts | Promise<DeviceKeyCounts> {
    return this.#cache.getOrLoad(`${userId} ${deviceId}`, () => this.#load({ userId, deviceId }));
  }

  async #load(device: DeviceAddress): Promise<DeviceKeyCounts> {
    const reader = this.#database.reader<E2eeTables>();
    const [counts, unusedFallbackKeyTypes] = await Promise.all([
      countKeys(reader, device),
      unusedFallbackTypes(reader, device),
    ]);
    return { oneTimeKeyCounts: withDefaultAlgorithm(counts), unusedFallbackKeyTypes };
  }
}

/** Adds the default algorithm with a count of zero when it is missing. */
export const withDefaultAlgorithm = (counts: Readonly<Record<string, number>>) => ({
  [defaultAlgorithm]: 0,
  ...counts,
});
