import type { Reader } from '../../kernel/database/index.ts';
import type { Sequence } from '../../kernel/streams/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import { splitStateMapKey } from '../../protocol/index.ts';
import type { RoomTables } from '../tables.ts';
import { isStorableText } from '../timeline/event-to-send.ts';
import { StateKeys } from './state-keys.ts';

/** State keys in the process that writes: new ones get their numbers here. */
export class WritableStateKeys extends StateKeys {
  readonly #sequence: Sequence;
  readonly #slices: TimeSlices;
  /** Given out but not yet on disk: an event that is staged with them must be staged with their rows. */
  readonly #unsaved = new Map<string, number>();

  /** @param size how many keys are kept in memory */
  constructor(reader: Reader<RoomTables>, sequence: Sequence, slices: TimeSlices, size: number) {
    super(reader, slices, size);
    this.#sequence = sequence;
    this.#slices = slices;
  }

  /** The number of a key that `prepare` was called for; `undefined` when it is not in memory. */
  override peek(key: string): number | undefined {
    return this.#unsaved.get(key) ?? super.peek(key);
  }

  /** Finds or makes the number of a key; afterwards `peek` has it. */
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

  /** `prepare` for many keys. @returns key to number; keys that no database can hold are absent */
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

  /** Whether the row of a key has yet to be written. */
  isUnsaved(key: string): boolean {
    return this.#unsaved.has(key);
  }

  /** The rows of these keys are on disk. */
  saved(keys: Iterable<string>): void {
    for (const key of keys) {
      const nid = this.#unsaved.get(key);
      if (nid === undefined) continue;
      this.#unsaved.delete(key);
      this.remember(nid, ...splitStateMapKey(key));
    }
  }
}
