import { AuthGraph } from './auth-graph.ts';
import type { StateResolutionSource } from './source.ts';

/**
 * Computes the auth difference by walking the auth chains: the events in the auth chain of at least one set,
 * but not of every set. Time grows with the number of sets times the size of the chains, memory with the size
 * of the chains.
 * Source: https://spec.matrix.org/latest/rooms/v2/#definitions
 */
export function authChainDifference(
  sets: readonly ReadonlySet<string>[],
  source: StateResolutionSource,
): Set<string> {
  const graph = new AuthGraph(allIds(sets), source);
  const chainCounts = new Uint32Array(graph.size);
  const lastChain = new Uint32Array(graph.size);
  sets.forEach((set, index) => {
    const chain = index + 1;
    const visit = (event: number): boolean => {
      if (lastChain[event] === chain) return false;
      lastChain[event] = chain;
      chainCounts[event]!++;
      return true;
    };
    for (const id of set) graph.walk(graph.numberOf(id), visit);
  });
  const difference = new Set<string>();
  chainCounts.forEach((count, event) => {
    if (count > 0 && count < sets.length) difference.add(graph.idOf(event));
  });
  return difference;
}

function* allIds(sets: readonly ReadonlySet<string>[]): Generator<string> {
  for (const set of sets) yield* set;
}

/**
 * Computes the conflicted state subgraph by walking the auth chains: the conflicted events, and all events on
 * a path of `auth_events` from one of them to another.
 * Source: https://spec.matrix.org/latest/rooms/v12/#definitions
 */
export function conflictedSubgraph(
  conflicted: ReadonlySet<string>,
  source: StateResolutionSource,
): Set<string> {
  // Every event in this graph can be reached from a conflicted event. So each of them from which a conflicted event can
  // be reached is on a path between conflicted events.
  const graph = new AuthGraph(conflicted, source);
  const targets = Array.from(conflicted, (id) => graph.numberOf(id));
  const subgraph = new Set<string>();
  graph.leadingTo(targets).forEach((leads, event) => {
    if (leads === 1) subgraph.add(graph.idOf(event));
  });
  return subgraph;
}
