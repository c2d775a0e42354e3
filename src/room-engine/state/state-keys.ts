import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Reader } from '../../kernel/database/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import { splitStateMapKey, stateMapKey } from '../../protocol/index.ts';
import { isStorableText } from '../event-to-send.ts';
import type { RoomTables } from '../tables.ts';

/** Maximum number of keys in one query. */
const maxIds = 500;

/** Maps pairs of event type and state key to nids, so that state tables hold small integers. */
export class StateKeys {
  readonly #reader: Reader<RoomTables>;
  readonly #slices: TimeSlices;
  readonly #nids: Cache<string, number>;
  readonly #names: Cache<number, string>;

  /** @param size maximum number of cached keys */
  constructor(reader: Reader<RoomTables>, caches: CacheRegistry, slices: TimeSlices, size: number) {
    this.#reader = reader;
    this.#slices = slices;
    // Both caches hold the same strings.
    this.#nids = caches.create('state_keys', { size, maxBytes: 8 * MiB });
    this.#names = caches.create('state_key_names', { size, maxBytes: 6 * MiB });
  }

  /** Returns the nid of a key when it is cached; else `undefined`. */
  peek(key: string): number | undefined {
    return this.#nids.get(key);
  }

  /** Reads the nid of a key; `undefined` when no event ever had it. */
  async find(key: string): Promise<number | undefined> {
    const cached = this.peek(key);
    if (cached !== undefined) return cached;
    const [type, stateKey] = splitStateMapKey(key);
    if (!isStorableText(type) || !isStorableText(stateKey)) return undefined;
    const row = await this.#reader
      .selectFrom('state_keys')
      .select('nid')
      .where('type', '=', type)
      .where('state_key', '=', stateKey)
      .executeTakeFirst();
    if (row) this.remember(row.nid, type, stateKey);
    return row?.nid;
  }

  /** Reads the nids of keys; keys that no event ever had are absent. */
  async findMany(keys: Iterable<string>): Promise<Map<string, number>> {
    const result = new Map<string, number>();
    const missing = new Map<string, Set<string>>();
    await this.#slices.each(keys, (key) => {
      const cached = this.peek(key);
      if (cached !== undefined) {
        result.set(key, cached);
        return;
      }
      const [type, stateKey] = splitStateMapKey(key);
      if (!isStorableText(type) || !isStorableText(stateKey)) return;
      const stateKeysOfType = missing.get(type);
      if (stateKeysOfType) stateKeysOfType.add(stateKey);
      else missing.set(type, new Set([stateKey]));
    });
    for (const [type, stateKeys] of missing) {
      const wantedKeys = [...stateKeys];
      for (let start = 0; start < wantedKeys.length; start += maxIds) {
        if (start > 0) await this.#slices.pauseIfDue();
        const rows = await this.#reader
          .selectFrom('state_keys')
          .select(['nid', 'state_key'])
          .where('type', '=', type)
          .where('state_key', 'in', wantedKeys.slice(start, start + maxIds))
          .execute();
        for (const row of rows) result.set(this.remember(row.nid, type, row.state_key), row.nid);
      }
    }
    return result;
  }

  /** Reads the keys of nids, in the same order. */
  async names(nids: readonly number[]): Promise<string[]> {
    const missing = nids.filter((nid) => !this.#names.has(nid));
    const result = new Map<number, string>();
    for (let start = 0; start < missing.length; start += maxIds) {
      if (start > 0) await this.#slices.pauseIfDue();
      const rows = await this.#reader
        .selectFrom('state_keys')
        .selectAll()
        .where('nid', 'in', missing.slice(start, start + maxIds))
        .execute();
      for (const row of rows) result.set(row.nid, this.remember(row.nid, row.type, row.state_key));
    }
    return nids.map((nid) => {
      const name = result.get(nid) ?? this.#names.get(nid);
      if (name === undefined) throw new Error(`state key ${nid} is not in the database`);
      return name;
    });
  }

  /** Caches a key with its nid. @returns the key, as `stateMapKey` */
  remember(nid: number, type: string, stateKey: string): string {
    const key = stateMapKey(type, stateKey);
    this.#nids.set(key, nid);
    this.#names.set(nid, key);
    return key;
  }

  /** Forgets a nid that was never written. */
  protected forget(nid: number, key: string): void {
    this.#names.delete(nid);
    if (this.#nids.get(key) === nid) this.#nids.delete(key);
  }
}
