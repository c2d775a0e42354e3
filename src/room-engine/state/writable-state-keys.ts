import type { Reader } from '../../kernel/database/index.ts';
import type { Sequence } from '../../kernel/streams/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import { splitStateMapKey } from '../../protocol/index.ts';
import type { RoomTables } from '../tables.ts';
import { isStorableText } from '../timeline/event-to-send.ts';
import { StateKeys } from './state-keys.ts';

/** State keys in the writing process, which allocates the nids of new keys. */
export class WritableStateKeys extends StateKeys {
  readonly #sequence: Sequence;
  readonly #slices: TimeSlices;
  /** Nids that are not on disk yet: an event that is staged with them must be staged with their rows. */
  readonly #unsaved = new Map<string, number>();

  /** @param size maximum number of cached keys */
  constructor(reader: Reader<RoomTables>, sequence: Sequence, slices: TimeSlices, size: number) {
    super(reader, slices, size);
    this.#sequence = sequence;
    this.#slices = slices;
  }

  /** Returns the nid of a key that was prepared; `undefined` when it is not in memory. */
  override peek(key: string): number | undefined {
    return this.#unsaved.get(key) ?? super.peek(key);
  }

  /** Reads or allocates the nid of a key; afterwards `peek` returns it. */
  async prepare(key: string): Promise<number> {
    const known = this.peek(key) ?? (await this.find(key));
    if (known !== undefined) return known;
    return this.peek(key) ?? this.#make(key);
  }

  #make(key: string): number {
    const nid = this.#sequence.next();
    this.#unsaved.set(key, nid);
    this.remember(nid, ...splitStateMapKey(key));
    return nid;
  }

  /** `prepare` for many keys. @returns key to nid; keys that no database can store are absent */
  async prepareMany(keys: Iterable<string>): Promise<Map<string, number>> {
    const all = [...keys];
    const found = await this.findMany(all);
    const missing = all.filter((key) => !found.has(key));
    await this.#slices.each(missing, (key) => {
      const [type, stateKey] = splitStateMapKey(key);
      if (isStorableText(type) && isStorableText(stateKey)) found.set(key, this.peek(key) ?? this.#make(key));
    });
    return found;
  }

  /** Returns whether the row of a key has yet to be written. */
  isUnsaved(key: string): boolean {
    return this.#unsaved.has(key);
  }

  /** Marks the rows of these keys as written. */
  saved(keys: Iterable<string>): void {
    for (const key of keys) {
      const nid = this.#unsaved.get(key);
      if (nid === undefined) continue;
      this.#unsaved.delete(key);
      this.remember(nid, ...splitStateMapKey(key));
    }
  }
}
