import type { HeapEdge, HeapGraph, HeapNode } from './heap-graph.ts';

export interface LargeCollection {
  /** The properties and variables that hold it: `Class.#property`, `variable in a closure`. */
  readonly holders: readonly string[];
  /** How it is reached from the root. */
  readonly path: string;
  /** Estimated number of entries, at most four times the real number. */
  readonly entries: number;
}

/** Bytes of an entry in the table of a `Map`, with its share of the buckets. */
const mapEntryBytes = 28;

/** Bytes of an entry in the table of a `Set`, with its share of the buckets. */
const setEntryBytes = 20;

/** Bytes of an element of an array. */
const elementBytes = 8;

/** Number of steps of a path that are shown. */
const shownSteps = 12;

/**
 * Finds maps, sets, arrays and objects with many entries that stay in memory although no registered cache holds them:
 * references lead to them that do not pass through a `Cache` or a cached value. Only caches are bounded in bytes,
 * counted in metrics and emptied when memory is short.
 */
export function largeCollections(graph: HeapGraph, minEntries: number): LargeCollection[] {
  const { nodes, reachedBy } = reachWithoutCaches(graph);
  const large = new Map<HeapNode, { readonly entries: number; readonly holders: HeapEdge[] }>();
  const isLarge = new Uint8Array(graph.size);
  for (const node of nodes) {
    const entries = entriesOf(graph, node);
    if (entries < minEntries) continue;
    large.set(node, { entries, holders: [] });
    isLarge[node] = 1;
  }
  for (const node of nodes) {
    for (let edge = graph.firstEdgeOf(node); edge < graph.firstEdgeOf(node + 1); edge++) {
      const target = graph.targetOf(edge);
      if (isLarge[target] && graph.edgeTypeOf(edge) !== 'weak') large.get(target)!.holders.push(edge);
    }
  }
  return [...large].map(([node, { entries, holders }]) => ({
    entries,
    holders: holders.map((edge) => holderName(graph, edge, reachedBy)),
    path: pathTo(graph, node, reachedBy),
  }));
}

/**
 * For each node, the first edge that reached it from the root; -1 for the root, and for nodes that were not reached.
 */
type ReachedBy = Int32Array;

/** Returns the nodes that are reached from the root, in the order of a breadth-first search. */
function reachWithoutCaches(graph: HeapGraph): { nodes: Uint32Array; reachedBy: ReachedBy } {
  const reachedBy = new Int32Array(graph.size).fill(-1);
  const cached = cachesAndTheirValues(graph);
  const nodes = new Uint32Array(graph.size);
  let count = 1;
  for (let index = 0; index < count; index++) {
    const node = nodes[index]!;
    if (cached.has(node)) continue;
    for (let edge = graph.firstEdgeOf(node); edge < graph.firstEdgeOf(node + 1); edge++) {
      const target = graph.targetOf(edge);
      if (target === 0 || reachedBy[target] !== -1 || isWeak(graph, edge)) continue;
      reachedBy[target] = edge;
      nodes[count++] = target;
    }
  }
  return { nodes: nodes.subarray(0, count), reachedBy };
}

/**
 * Returns the caches and their values. A value counts as held by its cache also where another object refers to it, for
 * example an index.
 */
function cachesAndTheirValues(graph: HeapGraph): Set<HeapNode> {
  const cached = new Set<HeapNode>();
  for (let node = 0; node < graph.size; node++) {
    if (!isCache(graph, node)) continue;
    cached.add(node);
    let entry = graph.follow(node, '#newest');
    while (entry !== undefined && graph.typeOf(entry) === 'object') {
      const value = graph.follow(entry, 'value');
      if (value !== undefined && graph.typeOf(value) === 'object') cached.add(value);
      entry = graph.follow(entry, 'older');
    }
  }
  return cached;
}

const isCache = (graph: HeapGraph, node: HeapNode) =>
  graph.typeOf(node) === 'object' &&
  graph.nameOf(node) === 'Cache' &&
  graph.follow(node, '#entries') !== undefined;

/** Whether an edge does not keep its target in memory: an edge of a weak reference or of a weak map. */
function isWeak(graph: HeapGraph, edge: HeapEdge): boolean {
  const type = graph.edgeTypeOf(edge);
  return type === 'weak' || (type === 'internal' && graph.edgeNameOf(edge).includes('in WeakMap'));
}

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
  let properties = 0;
  for (let edge = graph.firstEdgeOf(node); edge < graph.firstEdgeOf(node + 1); edge++) {
    if (graph.edgeTypeOf(edge) === 'property') properties++;
  }
  return properties;
}

/**
 * Names the object that holds a collection. The name of a holder that is a collection or an object literal begins with
 * the name of its own holder.
 */
function holderName(graph: HeapGraph, edge: HeapEdge, reachedBy: ReachedBy): string {
  const type = graph.edgeTypeOf(edge);
  const name = graph.edgeNameOf(edge);
  if (type === 'context') return `${name} in a closure`;
  const from = graph.sourceOf(edge);
  // A bundler adds characters to names that it must keep apart.
  const owner = graph.nameOf(from).replace(/^_|\d+$/g, '');
  const isAnonymous = graph.typeOf(from) !== 'object' || plainNames.has(owner);
  const outer = isAnonymous ? reachedBy[from]! : -1;
  const suffix = type === 'property' ? `.${name}` : '[]';
  return outer < 0 ? `${owner}${suffix}` : `${holderName(graph, outer, reachedBy)}${suffix}`;
}

/** Classes of general use, whose objects are reported under the names of their holders. */
const plainNames = new Set(['Object', 'Map', 'Set', 'Array', 'BriefMap', 'RecentChanges']);

function pathTo(graph: HeapGraph, node: HeapNode, reachedBy: ReachedBy): string {
  const steps: string[] = [];
  for (let edge = reachedBy[node]!; edge >= 0; ) {
    const from = graph.sourceOf(edge);
    steps.unshift(`${graph.nameOf(from)} ${graph.edgeNameOf(edge)}`);
    edge = reachedBy[from]!;
  }
  return steps.slice(-shownSteps).join(' > ');
}
