import type { StateMap } from '../event.ts';

/** The state sets of a resolution, divided into what they agree on and what they do not. */
export interface Conflicts {
  /** Entries that are the same in every set. */
  readonly unconflicted: StateMap<string>;
  /** The event ids of all other entries. */
  readonly conflicted: ReadonlySet<string>;
}

/**
 * Divides state sets into the unconflicted state map and the conflicted state set, as state resolution v2
 * defines them: a key that one of the sets lacks is conflicted.
 * Source: https://spec.matrix.org/latest/rooms/v2/#definitions
 */
export function findConflicts(stateSets: readonly StateMap<string>[]): Conflicts {
  const unconflicted = new Map<string, string>();
  const conflicted = new Set<string>();
  for (const set of stateSets) {
    for (const [key, id] of set) {
      if (unconflicted.has(key)) continue;
      if (stateSets.every((other) => other.get(key) === id)) unconflicted.set(key, id);
      else conflicted.add(id);
    }
  }
  return { unconflicted, conflicted };
}
