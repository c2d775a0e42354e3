import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { Reader } from '../../kernel/database/index.ts';
import type { Sequence } from '../../kernel/streams/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import { splitStateMapKey } from '../../protocol/index.ts';
import { isStorableText } from '../event-to-send.ts';
import type { RoomTables } from '../tables.ts';
import { type Attempt, Attempts } from './attempts.ts';
import { StateKeys } from './state-keys.ts';

/** A nid that is not on disk yet. */
interface UnsavedKey {
  readonly nid: number;
  /** The period of `Attempts` in which the key was last used. */
  usedIn: number;
}

/** While attempts run, unused keys are forgotten only when at least this many keys are unsaved. */
const minKeysToForget = 1_000;

export interface WritableStateKeysDeps {
  /** Numbers the keys. */
  readonly keys: Sequence;
  readonly caches: CacheRegistry;
  readonly slices: TimeSlices;
  /** Maximum number of cached keys, before it is multiplied by the cache factor. */
  readonly size: number;
}

/**
 * State keys in the main process, which allocates the nids of new keys. New keys are prepared and used within an
 * attempt. A new key that no attempt has written is forgotten when all attempts that used it have ended.
 */
export class WritableStateKeys extends StateKeys {
  readonly #sequence: Sequence;
  readonly #slices: TimeSlices;
  /** Keys whose rows are not on disk yet: an event that uses such a key is written together with the row of the key. */
  readonly #unsaved = new Map<string, UnsavedKey>();
  readonly #attempts = new Attempts();
  /** While attempts run, unused keys are forgotten when this number of keys is unsaved. */
  #forgetAt = minKeysToForget;

  constructor(reader: Reader<RoomTables>, { keys, caches, slices, size }: WritableStateKeysDeps) {
    super(reader, caches, slices, size);
    this.#sequence = keys;
    this.#slices = slices;
  }

  /** Number of keys whose rows have yet to be written. */
  get unsavedCount(): number {
    return this.#unsaved.size;
  }

  /** Begins an attempt to write events: keys that it prepares or reads stay in memory until `end`. */
  begin(): Attempt {
    return this.#attempts.begin();
  }

  /** Ends an attempt. The writes that it has staged are attempts of their own. */
  end(attempt: Attempt): void {
    this.#attempts.end(attempt);
    if (this.#unsaved.size > 0) this.#forgetUnused();
  }

  /** Runs `work` as an attempt. */
  async attempt<T>(work: () => Promise<T>): Promise<T> {
    const attempt = this.begin();
    try {
      return await work();
    } finally {
      this.end(attempt);
    }
  }

  /** Returns the nid of a key that is in memory; else `undefined`. Marks an unsaved key as used in the current period. */
  override peek(key: string): number | undefined {
    return this.#peekUnsaved(key) ?? super.peek(key);
  }

  /** Reads or allocates the nid of a key; afterwards `peek` returns it. */
  async prepare(key: string): Promise<number> {
    const existing = this.peek(key) ?? (await this.find(key));
    if (existing !== undefined) return existing;
    return this.peek(key) ?? this.#add(key, this.#sequence.next());
  }

  /** `prepare` for many keys. @returns key to nid; keys that no database can store are absent */
  async prepareMany(keys: Iterable<string>): Promise<Map<string, number>> {
    const allKeys = [...keys];
    const nidsByKey = await this.findMany(allKeys);
    const missing = allKeys.filter((key) => !nidsByKey.has(key));
    if (missing.length === 0) return nidsByKey;
    let nid = this.#sequence.take(missing.length);
    await this.#slices.each(missing, (key) => {
      const [type, stateKey] = splitStateMapKey(key);
      if (isStorableText(type) && isStorableText(stateKey)) {
        nidsByKey.set(key, this.peek(key) ?? this.#add(key, nid++));
      }
    });
    return nidsByKey;
  }

  /** Returns whether the row of a key has yet to be written. */
  isUnsaved(key: string): boolean {
    return this.#unsaved.has(key);
  }

  /** Marks unsaved keys as used in the current period, so that they stay in memory for a write that needs them. */
  use(keys: Iterable<string>): void {
    if (this.#unsaved.size === 0) return;
    for (const key of keys) this.#peekUnsaved(key);
  }

  /** Marks the rows of these keys as written. */
  saved(keys: Iterable<string>): void {
    for (const key of keys) {
      const unsaved = this.#unsaved.get(key);
      if (unsaved === undefined) continue;
      this.#unsaved.delete(key);
      this.remember(unsaved.nid, ...splitStateMapKey(key));
    }
  }

  #peekUnsaved(key: string): number | undefined {
    const unsaved = this.#unsaved.get(key);
    if (unsaved === undefined) return undefined;
    unsaved.usedIn = this.#attempts.period;
    return unsaved.nid;
  }

  #add(key: string, nid: number): number {
    this.#unsaved.set(key, { nid, usedIn: this.#attempts.period });
    this.remember(nid, ...splitStateMapKey(key));
    return nid;
  }

  #forgetUnused(): void {
    const { isIdle, oldest } = this.#attempts;
    if (!isIdle && this.#unsaved.size < this.#forgetAt) return;
    for (const [key, { nid, usedIn }] of this.#unsaved) {
      if (usedIn >= oldest) continue;
      this.#unsaved.delete(key);
      this.forget(nid, key);
    }
    this.#attempts.nextPeriod();
    this.#forgetAt = Math.max(minKeysToForget, this.#unsaved.size * 2);
  }
}
