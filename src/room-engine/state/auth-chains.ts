import type { AuthEdges } from './auth-edges.ts';

/** Maximum number of events whose edges one query reads. */
const eventsPerQuery = 250;

/** Number of events that are processed between two checks whether to yield to other work. */
const stepsBetweenPauses = 100;

/** Maximum number of sets in a walk: each set is one bit of a 32-bit integer. */
const maxSets = 30;

/**
 * Returns the auth difference of state sets: the events in the auth chain of at least one set, but not of all sets.
 * Auth events have lower nids than the events that refer to them, so the walk goes from the highest nid
 * down, with a bit for each set that leads to an event; it ends when all remaining events belong to all sets.
 * Source: room version 2, "Definitions".
 * @param sets the nids of each set, without the nids that are in all sets
 * @param common returns the nids that are in all sets; called at most once, and only when needed
 */
export async function authDifference(
  edges: AuthEdges,
  sets: readonly ReadonlySet<number>[],
  common: () => Promise<Iterable<number>>,
): Promise<Set<number>> {
  const [first, ...otherSets] = sets;
  const difference = new Set<number>();
  if (!first) return difference;
  let sorted: Promise<Float64Array> | undefined;
  const highestFirst = () => {
    sorted ??= common().then((nids) => Float64Array.from(nids).sort().reverse());
    return sorted;
  };
  // An event that is not in all chains is in the difference between the first chain and another chain.
  for (let start = 0; start < otherSets.length; start += maxSets - 1) {
    const walk = new DifferenceWalk(edges, [first, ...otherSets.slice(start, start + maxSets - 1)]);
    for (const nid of await walk.run(highestFirst)) difference.add(nid);
  }
  return difference;
}

/** An event that the walk has reached. */
interface Node {
  /** The sets that contain the event itself, as bits. */
  held: number;
  /** The sets whose auth chains contain the event, as bits. */
  reached: number;
}

/** Walks the auth events of some sets, from the highest nid down. */
class DifferenceWalk {
  readonly #edges: AuthEdges;
  /** The bits of all sets. */
  readonly #all: number;
  readonly #nodes = new Map<number, Node>();
  readonly #heap = new NumberHeap();
  /** Number of nodes that may still be in the difference or lead to an event in it. */
  #openCount = 0;

  readonly #sets: readonly ReadonlySet<number>[];

  constructor(edges: AuthEdges, sets: readonly ReadonlySet<number>[]) {
    this.#edges = edges;
    this.#sets = sets;
    this.#all = 2 ** sets.length - 1;
  }

  /** Returns the auth difference of the sets. @param common returns the nids that are in all sets, highest first */
  async run(common: () => Promise<Float64Array>): Promise<number[]> {
    const difference: number[] = [];
    for (const [index, set] of this.#sets.entries()) {
      await this.#edges.slices.each(set, (nid) => this.#mark(nid, 1 << index, 0));
    }
    if (this.#openCount === 0) return difference;
    const unconflicted = await common();
    let next = 0;
    for (let steps = 1; this.#openCount > 0; steps++) {
      if (steps % stepsBetweenPauses === 0) await this.#edges.slices.pauseIfDue();
      // The auth events of common events are in all chains, so common events are marked before lower nids are taken.
      const top = this.#heap.peek() ?? 0;
      if (next < unconflicted.length && unconflicted[next]! >= top) {
        const end = Math.min(next + eventsPerQuery, unconflicted.length);
        for (; next < end; next++) this.#mark(unconflicted[next]!, this.#all, 0);
        continue;
      }
      const auth =
        this.#edges.peek(top) ?? (await this.#edges.of(this.#heap.highest(eventsPerQuery))).get(top) ?? [];
      this.#heap.pop();
      const { held, reached } = this.#nodes.get(top)!;
      if (this.#isOpen({ held, reached })) this.#openCount -= 1;
      this.#nodes.delete(top);
      if (reached !== 0 && reached !== this.#all) difference.push(top);
      for (const nid of auth) if (nid < top) this.#mark(nid, 0, held | reached);
    }
    return difference;
  }

  #mark(nid: number, held: number, reached: number): void {
    let node = this.#nodes.get(nid);
    if (node) {
      if (this.#isOpen(node)) this.#openCount -= 1;
      node.held |= held;
      node.reached |= reached;
    } else {
      node = { held, reached };
      this.#nodes.set(nid, node);
      this.#heap.push(nid);
    }
    if (this.#isOpen(node)) this.#openCount += 1;
  }

  /** Returns whether the event may be in the difference, or its auth events have not been reached from all sets yet. */
  #isOpen({ held, reached }: Node): boolean {
    return (held | reached) !== this.#all || (reached !== 0 && reached !== this.#all);
  }
}

/**
 * Returns the conflicted state subgraph: the events on a path of auth events between two conflicted events, these
 * events included. An event with a lower nid than all conflicted events is on no such path. Source: room version 12,
 * "Definitions".
 */
export async function conflictedSubgraph(edges: AuthEdges, conflicted: Iterable<number>): Promise<number[]> {
  const targets = new Set(conflicted);
  const lowest = targets.values().reduce((low, nid) => Math.min(low, nid), Number.POSITIVE_INFINITY);
  const auth = new Map<number, readonly number[]>();
  for (let pending = [...targets]; pending.length > 0; ) {
    const edgesRead = await edges.of(pending);
    const next = new Set<number>();
    await edges.slices.each(edgesRead, ([nid, authNids]) => {
      auth.set(nid, authNids);
      for (const authNid of authNids)
        if (authNid > lowest && authNid < nid && !auth.has(authNid)) next.add(authNid);
    });
    pending = [...next].filter((nid) => !auth.has(nid));
  }
  const subgraph = new Set<number>(targets);
  await edges.slices.each(
    [...auth.keys()].sort((a, b) => a - b),
    (nid) => {
      if (auth.get(nid)?.some((authNid) => authNid < nid && subgraph.has(authNid))) subgraph.add(nid);
    },
  );
  return [...subgraph];
}

/**
 * Returns the auth chain of some events.
 * @param limit maximum number of events; the events with the highest nids are returned
 * @returns ascending nids
 */
export async function authChain(
  edges: AuthEdges,
  from: Iterable<number>,
  limit = Number.POSITIVE_INFINITY,
): Promise<number[]> {
  const heap = new NumberHeap();
  const seen = new Set<number>();
  const inChain = new Set<number>();
  const add = (nid: number) => {
    if (seen.has(nid)) return;
    seen.add(nid);
    heap.push(nid);
  };
  for (const nid of from) add(nid);
  const chain: number[] = [];
  let steps = 0;
  for (let top = heap.peek(); top !== undefined; top = heap.peek()) {
    if (++steps % stepsBetweenPauses === 0) await edges.slices.pauseIfDue();
    const auth = edges.peek(top) ?? (await edges.of(heap.highest(eventsPerQuery))).get(top) ?? [];
    heap.pop();
    if (inChain.has(top)) {
      chain.push(top);
      if (chain.length >= limit) break;
    }
    for (const nid of auth) {
      if (nid >= top) continue;
      inChain.add(nid);
      add(nid);
    }
  }
  return chain.reverse();
}

/** A binary heap with the highest number on top. */
class NumberHeap {
  readonly #items: number[] = [];

  peek(): number | undefined {
    return this.#items[0];
  }

  /** Returns at most `count` high numbers, which include the highest. */
  highest(count: number): number[] {
    return this.#items.slice(0, count);
  }

  push(item: number): void {
    const items = this.#items;
    let index = items.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (items[parent]! >= item) break;
      items[index] = items[parent]!;
      index = parent;
    }
    items[index] = item;
  }

  /** Removes the highest number, without returning it. */
  pop(): void {
    const items = this.#items;
    const last = items.pop();
    if (items.length === 0 || last === undefined) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && items[child + 1]! > items[child]!) child++;
      if (last >= items[child]!) break;
      items[index] = items[child]!;
      index = child;
    }
    items[index] = last;
  }
}
