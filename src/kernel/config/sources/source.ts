import type { Position } from '../problems.ts';

/**
 * What a configuration file says, before anyone knows what it means: a tree that remembers where each
 * part stands, and for scalars also how they were written, since `1.10` as a version is not `1.1`.
 */
export type SourceNode = SourceScalar | SourceList | SourceMap;

export interface SourceScalar {
  readonly kind: 'scalar';
  readonly value: string | number | boolean | null;
  /** The characters as written, without quotes. */
  readonly text: string;
  /** Written without quotes: only then may `10` stand for a number and `yes` for true. */
  readonly plain: boolean;
  readonly at?: Position | undefined;
}

export interface SourceList {
  readonly kind: 'list';
  readonly items: readonly SourceNode[];
  readonly at?: Position | undefined;
}

export interface SourceMap {
  readonly kind: 'map';
  readonly entries: ReadonlyMap<string, SourceEntry>;
  readonly at?: Position | undefined;
}

/** A member of a mapping; `at` is where its name stands. */
export interface SourceEntry {
  readonly node: SourceNode;
  readonly at?: Position | undefined;
}

/** A scalar without a place in a file. */
export function scalarNode(value: string | number | boolean | null): SourceScalar {
  return { kind: 'scalar', value, text: String(value), plain: typeof value !== 'string' };
}

/** A mapping without a place in a file. */
export function mapNode(entries: Iterable<readonly [string, SourceNode]>, at?: Position): SourceMap {
  return {
    kind: 'map',
    entries: new Map([...entries].map(([name, node]) => [name, { node, at: node.at ?? at }])),
    at,
  };
}

/**
 * The tree of a value that the program holds: a default or a test's override. Members that are
 * undefined are left out. Throws on what no configuration can hold, such as a function.
 */
export function nodeFromValue(value: unknown): SourceNode {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) {
    return scalarNode(value as string | number | boolean | null);
  }
  if (Array.isArray(value)) return { kind: 'list', items: value.map(nodeFromValue) };
  if (typeof value !== 'object') throw new TypeError(`a configuration cannot hold a ${typeof value}`);
  const members = Object.entries(value as object).filter(([, member]) => member !== undefined);
  return mapNode(members.map(([name, member]) => [name, nodeFromValue(member)] as const));
}

/** The plain value of a tree, as JSON would have it; free-form content is handed on this way. */
export function valueFromNode(node: SourceNode): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(valueFromNode);
  const members = [...node.entries].map(([name, entry]) => [name, valueFromNode(entry.node)] as const);
  return Object.fromEntries(members);
}
