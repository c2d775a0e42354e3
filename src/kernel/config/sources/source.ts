import type { Findings, Position } from '../problems.ts';

/**
 * The content of a configuration file before it is checked: a tree with the place of each part. Scalars keep
 * their written form as well, because the version `1.10` is not `1.1`.
 */
export type SourceNode = SourceScalar | SourceList | SourceMap;

export interface SourceScalar {
  readonly kind: 'scalar';
  readonly value: string | number | boolean | null;
  /** The characters as written, without quotes. */
  readonly text: string;
  /** Whether the scalar is written without quotes. Only then may `10` be a number and `yes` be true. */
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

/** A member of a mapping; `at` is the place of its name. */
export interface SourceEntry {
  readonly node: SourceNode;
  readonly at?: Position | undefined;
}

/**
 * Changes the document before it is read: renames old names, applies environment variables, adds derived
 * values.
 */
export type DocumentTransform = (document: SourceMap, findings: Findings) => SourceMap;

/** Returns a scalar without a place in a file. */
export function scalarNode(value: string | number | boolean | null): SourceScalar {
  return { kind: 'scalar', value, text: String(value), plain: typeof value !== 'string' };
}

/** Returns a mapping without a place in a file. */
export function mapNode(entries: Iterable<readonly [string, SourceNode]>, at?: Position): SourceMap {
  return {
    kind: 'map',
    entries: new Map([...entries].map(([name, node]) => [name, { node, at: node.at ?? at }])),
    at,
  };
}

/**
 * Returns the tree of a plain value: a default, or an override of a test. Leaves out undefined members.
 * @throws TypeError for values that a configuration cannot contain, for example functions
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

/** Returns the plain JSON value of a tree; used for free-form content. */
export function valueFromNode(node: SourceNode): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(valueFromNode);
  const members = [...node.entries].map(([name, entry]) => [name, valueFromNode(entry.node)] as const);
  return Object.fromEntries(members);
}
