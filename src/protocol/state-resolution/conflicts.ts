import type { StateMap } from '../event.ts';

/** The state sets of a resolution, told apart. */
export interface Conflicts {
  /** What is the same in every set. */
  readonly unconflicted: StateMap<string>;
  /** The event ids of everything else. */
  readonly conflicted: ReadonlySet<string>;
}

/**
 * Tells the unconflicted state map and the conflicted state set apart, as the second algorithm defines them: a key
 * that one of the sets does not have is conflicted.
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
