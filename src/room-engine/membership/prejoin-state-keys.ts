import { splitStateMapKey, stateMapKey } from '../../protocol/index.ts';

/**
 * Maximum number of entries that are selected by type alone; remote servers accept at most a hundred entries in all.
 */
const maxEntriesByType = 80;

/** The state of a room, by `stateMapKey`. */
type State = Pick<ReadonlyMap<string, unknown>, 'has' | 'keys'>;

/**
 * Selects the stripped state that invited and knocking users receive: single entries, and all entries of some types.
 * Source: the option `room_prejoin_state`.
 */
export class PrejoinStateKeys {
  /** The single entries, as `stateMapKey`. */
  readonly single: readonly string[];
  readonly #types: ReadonlySet<string>;

  /** @param types event types whose entries are selected with every state key */
  constructor(single: readonly string[], types: readonly string[] = []) {
    this.single = [...new Set(single)];
    this.#types = new Set(types);
  }

  /** Whether no type is selected as a whole. */
  get hasOnlySingleEntries(): boolean {
    return this.#types.size === 0;
  }

  /**
   * Returns the selected entries that a state contains: first the single entries, then at most `maxEntriesByType`
   * entries of the types.
   */
  select(state: State): string[] {
    const chosen = this.single.filter((key) => state.has(key));
    if (this.hasOnlySingleEntries) return chosen;
    const selected = new Set(chosen);
    const maxEntries = selected.size + maxEntriesByType;
    for (const key of state.keys()) {
      if (selected.size >= maxEntries) break;
      if (this.#types.has(splitStateMapKey(key)[0])) selected.add(key);
    }
    return [...selected];
  }
}

/** Returns the keys of these types with an empty state key. */
export const keysWithEmptyStateKey = (types: readonly string[]): string[] =>
  types.map((type) => stateMapKey(type, ''));
