import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Stream } from '../../kernel/streams/index.ts';
import type { E2eeTables } from '../tables.ts';
import { unusedFallbackTypes } from './fallback-key-store.ts';
import { countKeys, type DeviceAddress } from './one-time-key-store.ts';

/** What a device is told of its keys on the server. */
export interface DeviceKeyCounts {
  /** Unclaimed one-time keys by algorithm. */
  readonly oneTimeKeyCounts: Readonly<Record<string, number>>;
  readonly unusedFallbackKeyTypes: readonly string[];
}

/** Of how many devices the counts are kept in memory. */
const devicesInMemory = 50_000;

/** Clients wait for this count before they upload keys, so that it is told also when it is zero. */
const usualAlgorithm = 'signed_curve25519';

/** How many keys devices have left, from memory where nothing has changed. */
export class KeyCounts {
  readonly #database: Database;
  readonly #cache: Cache<string, DeviceKeyCounts>;

  constructor(database: Database, caches: CacheRegistry, keyStream: Stream<DeviceAddress>) {
    this.#database = database;
    this.#cache = caches.create('device_key_counts', { size: devicesInMemory });
    keyStream.subscribe(({ userId, deviceId }) => this.#cache.delete(`${userId} ${deviceId}`));
  }

  /** The counts of one-time keys by algorithm, and the fallback keys that were not used yet. */
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

export const withDefaultAlgorithm = (counts: Readonly<Record<string, number>>) => ({
  [usualAlgorithm]: 0,
  ...counts,
});
