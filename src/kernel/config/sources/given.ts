import type { OptionSchema } from '../option.ts';
import { childPath, type Position } from '../problems.ts';
import { type AnySection, sectionOptions } from '../section.ts';
import type { SourceMap, SourceNode } from './source.ts';

/** The path of an option without indexes (`listeners[].port`), and the first place where a file gives it. */
export interface GivenOption {
  readonly path: string;
  readonly at: Position;
}

/**
 * Returns the given options, each once, in document order. Only options that the ledger of options (the list of options
 * that a test proves) counts are returned.
 */
export function givenOptions(
  document: SourceMap,
  sections: Readonly<Record<string, AnySection>>,
): GivenOption[] {
  const found = new Map<string, Position>();
  const known = Object.values(sections).flatMap((section) => Object.entries(sectionOptions(section)));
  const schemas = new Map(known);
  for (const [name, entry] of document.entries) {
    const schema = schemas.get(name);
    if (schema) collect(schema, entry.node, name, entry.at, found);
  }
  return [...found].map(([path, at]) => ({ path, at }));
}

/** Returns the members that the ledger of options counts separately; `undefined` when it counts the option as one. */
export function countedMembers(schema: OptionSchema): Readonly<Record<string, OptionSchema>> | undefined {
  if (schema['x-counts-as-one']) return undefined;
  const members = schema.properties ?? {};
  return Object.keys(members).length > 0 ? members : undefined;
}

/** Adds the counted options at `path` and below it to `found`, with the first place of each. */
function collect(
  schema: OptionSchema,
  node: SourceNode,
  path: string,
  at: Position | undefined,
  found: Map<string, Position>,
): void {
  const inner =
    schema.items ??
    (typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined);
  const parts = inner && countedMembers(inner) ? partsOf(node) : undefined;
  if (inner && parts) {
    const suffix = schema.items ? '[]' : '.*';
    for (const part of parts) collect(inner, part, `${path}${suffix}`, part.at, found);
    return;
  }
  const members = countedMembers(schema);
  if (members && node.kind === 'map') {
    for (const [name, entry] of node.entries) {
      const member = members[name];
      if (member) collect(member, entry.node, childPath(path, name), entry.at, found);
    }
  }
  const shorthand = schema['x-shorthand'];
  const countedPath =
    members && shorthand !== undefined && node.kind === 'scalar' ? childPath(path, shorthand) : path;
  if (members && countedPath === path) return;
  if (at !== undefined && !found.has(countedPath)) found.set(countedPath, at);
}

function partsOf(node: SourceNode): readonly SourceNode[] {
  if (node.kind === 'list') return node.items;
  return node.kind === 'map' ? [...node.entries.values()].map((entry) => entry.node) : [];
}
