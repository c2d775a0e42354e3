import type { Edge, HeapGraph, HeapNode } from './heap-graph.ts';

export interface LargeCollection {
  /** The properties and variables that hold it: `Class.#property`, `variable in a closure`. */
  readonly holders: readonly string[];
  /** How it is reached from the root. */
  readonly path: string;
  /** Estimated number of entries, at most four times the real one. */
  readonly entries: number;
}

/** Bytes of an entry in the table of a `Map` and of a `Set`, with its share of the buckets, and of an array's element. */
const [mapEntryBytes, setEntryBytes, elementBytes] = [28, 20, 8];

/** Number of steps of a path that are shown. */
const shownSteps = 12;

/**
 * Finds maps, sets, arrays and objects with many entries that stay in memory although no registered cache holds them:
 * those that can be reached without passing through a `Cache` or a value in one. Only caches are bounded in bytes, counted in
 * metrics and emptied when memory is short.
 */
export function largeCollections(graph: HeapGraph, minEntries: number): LargeCollection[] {
  const reachedBy = reachWithoutCaches(graph);
  const holders = new Map<HeapNode, Edge[]>();
  const large = new Map<HeapNode, number>();
  for (const node of reachedBy.keys()) {
    const entries = entriesOf(graph, node);
    if (entries >= minEntries) large.set(node, entries);
  }
  for (const node of reachedBy.keys()) {
    for (const edge of graph.edgesOf(node)) {
      if (!large.has(edge.to) || edge.type === 'weak') continue;
      const known = holders.get(edge.to);
      if (known) known.push(edge);
      else holders.set(edge.to, [edge]);
    }
  }
  return [...large].map(([node, entries]) => ({
    entries,
    holders: (holders.get(node) ?? []).map((edge) => holderName(graph, edge, reachedBy)),
    path: pathTo(graph, node, reachedBy),
  }));
}

/** Returns the edge by which each node is reached first from the root. */
function reachWithoutCaches(graph: HeapGraph): Map<HeapNode, Edge | undefined> {
  const reachedBy = new Map<HeapNode, Edge | undefined>([[0, undefined]]);
  const owned = cachesAndTheirValues(graph);
  const queue: HeapNode[] = [0];
  for (const node of queue) {
    if (owned.has(node)) continue;
    for (const edge of graph.edgesOf(node)) {
      if (isWeak(edge) || reachedBy.has(edge.to)) continue;
      reachedBy.set(edge.to, edge);
      queue.push(edge.to);
    }
  }
  return reachedBy;
}

/** Returns the caches, and the objects that are values in them: others may refer to these, in an index for instance. */
function cachesAndTheirValues(graph: HeapGraph): Set<HeapNode> {
  const owned = new Set<HeapNode>();
  for (let node = 0; node < graph.size; node++) {
    if (!isCache(graph, node)) continue;
    owned.add(node);
    let entry = graph.follow(node, '#newest');
    while (entry !== undefined && graph.typeOf(entry) === 'object') {
      const value = graph.follow(entry, 'value');
      if (value !== undefined && graph.typeOf(value) === 'object') owned.add(value);
      entry = graph.follow(entry, 'older');
    }
  }
  return owned;
}

const isCache = (graph: HeapGraph, node: HeapNode) =>
  graph.typeOf(node) === 'object' &&
  graph.nameOf(node) === 'Cache' &&
  graph.follow(node, '#entries') !== undefined;

/** Whether an edge does not keep its node in memory by itself: those of weak references and of weak maps. */
const isWeak = ({ type, name }: Edge) => type === 'weak' || name.includes('in WeakMap');

function entriesOf(graph: HeapGraph, node: HeapNode): number {
  if (graph.typeOf(node) !== 'object') return 0;
  const name = graph.nameOf(node);
  if (name === 'Map' || name === 'Set') {
    const table = graph.follow(node, 'table');
    return table === undefined
      ? 0
      : Math.floor(graph.bytesOf(table) / (name === 'Map' ? mapEntryBytes : setEntryBytes));
  }
  if (name === 'Array') {
    const elements = graph.follow(node, 'elements');
    return elements === undefined ? 0 : Math.floor(graph.bytesOf(elements) / elementBytes);
  }
  let members = 0;
  for (const { type } of graph.edgesOf(node)) if (type === 'property') members++;
  return members;
}

/** Names the holder of a collection; for a collection in another one, or in an object literal, also what holds that. */
function holderName(
  graph: HeapGraph,
  { type, name, from }: Edge,
  reachedBy: ReadonlyMap<HeapNode, Edge | undefined>,
): string {
  if (type === 'context') return `${name} in a closure`;
  // A bundler adds characters to names that it must keep apart.
  const owner = graph.nameOf(from).replace(/^_|\d+$/g, '');
  const isAnonymous = graph.typeOf(from) !== 'object' || plainNames.has(owner);
  const outer = isAnonymous ? reachedBy.get(from) : undefined;
  const own = type === 'property' ? `.${name}` : '[]';
  return outer ? `${holderName(graph, outer, reachedBy)}${own}` : `${owner}${own}`;
}

const plainNames = new Set(['Object', 'Map', 'Set', 'Array', 'BriefMap', 'RecentChanges']);

function pathTo(
  graph: HeapGraph,
  node: HeapNode,
  reachedBy: ReadonlyMap<HeapNode, Edge | undefined>,
): string {
  const steps: string[] = [];
  for (let edge = reachedBy.get(node); edge; edge = reachedBy.get(edge.from)) {
    steps.unshift(`${graph.nameOf(edge.from)} ${edge.name}`);
  }
  return steps.slice(-shownSteps).join(' > ');
}
