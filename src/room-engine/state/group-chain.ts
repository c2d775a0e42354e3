/**
 * The base in which the groups of a chain are numbered. State groups are stored as deltas. The groups of one chain are
 * numbered 0, 1, 2, ... A group whose number ends in `k` zeros in base 32, at most `levels`, stores the changes of
 * the last 32^k groups and links to the group 32^k places before it. So the state of group `n` is the sum of at most
 * `31 * levels + n / 32^levels` deltas, and each change is stored about `levels` times, however large the room grows.
 */
const base = 32;

/** Number of levels: a delta holds the changes of at most 32^levels groups. */
const levels = 3;

/** Event nids by state key nid; an event nid of 0 removes the entry. */
export type GroupDelta = ReadonlyMap<number, number>;

/** A state group as it is stored. */
export interface GroupRows {
  readonly id: number;
  /** The number of the group in its chain. */
  readonly ordinal: number;
  /** The group that this group links to; `undefined` for the root of the chain. */
  readonly prevId: number | undefined;
  /** The changes since `prevId`; the whole state for the root. */
  readonly delta: GroupDelta;
}

/** A stored group of a chain, between its newest group and its root. */
export interface ChainLink {
  readonly id: number;
  readonly ordinal: number;
  readonly delta: GroupDelta;
}

/**
 * The newest group of a chain, and the changes that are needed to add the next group. Mutable: each head has its own.
 */
export class GroupChain {
  #id: number | undefined;
  #ordinal: number;
  /** `[k]`: the changes since the last group whose number is a multiple of 32^(k+1). */
  readonly #accumulators: Map<number, number>[];
  /** `[k]`: the id of the last group whose number is a multiple of 32^(k+1). */
  readonly #anchors: (number | undefined)[];

  /** @param links from the newest group to the root, as stored; empty for a new room. */
  constructor(links: readonly ChainLink[] = []) {
    this.#id = links[0]?.id;
    this.#ordinal = links[0]?.ordinal ?? -1;
    this.#accumulators = [];
    this.#anchors = [];
    for (let level = 0; level < levels; level++) {
      const floor = Math.max(0, this.#ordinal - (Math.max(0, this.#ordinal) % base ** (level + 1)));
      const accumulator = new Map<number, number>();
      for (const link of links.filter((link) => link.ordinal > floor).reverse()) {
        for (const [key, event] of link.delta) accumulator.set(key, event);
      }
      this.#accumulators.push(accumulator);
      this.#anchors.push(links.find((link) => link.ordinal <= floor)?.id);
    }
  }

  /** Id of the newest group; `undefined` for an empty chain. */
  get id(): number | undefined {
    return this.#id;
  }

  /** Returns a copy, to continue the chain in another way. */
  fork(): GroupChain {
    const fork = new GroupChain();
    fork.#id = this.#id;
    fork.#ordinal = this.#ordinal;
    for (let level = 0; level < levels; level++) {
      fork.#accumulators[level] = new Map(this.#accumulators[level]);
      fork.#anchors[level] = this.#anchors[level];
    }
    return fork;
  }

  /** Adds a group: the state of the newest group with these changes. */
  advance(id: number, changes: GroupDelta): GroupRows {
    const ordinal = this.#ordinal + 1;
    const level = ordinal === 0 ? levels : trailingZeros(ordinal);
    // Skips the accumulators that are cleared below without being read, because the changes may be many.
    for (const accumulator of ordinal === 0 ? [] : this.#accumulators.slice(Math.max(0, level - 1))) {
      for (const [key, event] of changes) accumulator.set(key, event);
    }
    const rows = {
      id,
      ordinal,
      prevId: level === 0 ? this.#id : this.#anchors[level - 1],
      delta: level === 0 || ordinal === 0 ? changes : new Map(this.#accumulators[level - 1]),
    };
    for (let below = 0; below < level; below++) {
      this.#accumulators[below]?.clear();
      this.#anchors[below] = id;
    }
    this.#id = id;
    this.#ordinal = ordinal;
    return rows;
  }
}

/** Returns the number of zeros that a number above 0 ends in, in base 32; at most `levels`. */
function trailingZeros(ordinal: number): number {
  let level = 0;
  while (level < levels && ordinal % base ** (level + 1) === 0) level++;
  return level;
}
