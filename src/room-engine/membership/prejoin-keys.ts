import { splitStateMapKey, stateMapKey } from '../../protocol/index.ts';

/** Entries that are chosen by their type alone: other servers take no more than a hundred in all. */
const maxEntriesByType = 80;

/** The state of a room, by `stateMapKey`. */
type State = Pick<ReadonlyMap<string, unknown>, 'has' | 'keys'>;

/**
 * Chooses what of a room's state people see who are invited or knock: single entries, and all entries of some types.
 * Source: requirement document 2, "room_prejoin_state".
 */
export class PrejoinKeys {
  /** The single entries, as `stateMapKey`. */
  readonly single: readonly string[];
  readonly #types: ReadonlySet<string>;

  /** @param types of which all entries are chosen, whatever their state key */
  constructor(single: readonly string[], types: readonly string[] = []) {
    this.single = [...new Set(single)];
    this.#types = new Set(types);
  }

  /** Whether the single entries are all there is to choose. */
  get hasOnlySingleEntries(): boolean {
    return this.#types.size === 0;
  }

  /** The chosen entries that a state has: the single ones, then those of whole types, as far as they are not many. */
  select(state: State): string[] {
    const chosen = this.single.filter((key) => state.has(key));
    if (this.hasOnlySingleEntries) return chosen;
    const known = new Set(chosen);
    const most = known.size + maxEntriesByType;
    for (const key of state.keys()) {
      if (known.size >= most) break;
      if (this.#types.has(splitStateMapKey(key)[0])) known.add(key);
    }
    return [...known];
  }
}

/** The entries of some types with an empty state key. */
export const keysWithEmptyStateKey = (types: readonly string[]): string[] =>
  types.map((type) => stateMapKey(type, ''));
