import type { Findings } from '../problems.ts';
import type { DocumentTransform } from '../reading/load.ts';
import type { SourceEntry, SourceMap, SourceNode } from './source.ts';

/** Another name for an option, as a path from the top of the document or within the items of a list. */
export interface Alias {
  /** The other name: `riot_base_url`, after the path of what holds it: `email`, `listeners[]`. */
  readonly name: string;
  readonly within?: string;
  /** The option, as a path from the same place. */
  readonly option: string;
  /** An old name draws a warning; a name of the wider ecosystem does not. */
  readonly old: boolean;
  /** Turns a value of the old form into one of the new; undefined keeps nothing. */
  readonly convert?: (node: SourceNode) => SourceNode | undefined;
}

/** Renames what a document gives under other names. A thing that is given under two names is an error. */
export function renameAliases(aliases: readonly Alias[]): DocumentTransform {
  return (document, findings) =>
    aliases.reduce((tree, alias) => renameWithin(tree, stepsOf(alias.within), '', alias, findings), document);
}

function renameWithin(
  map: SourceMap,
  steps: readonly string[],
  path: string,
  alias: Alias,
  findings: Findings,
): SourceMap {
  const [step, ...rest] = steps;
  if (step === undefined) return rename(map, path, alias, findings);
  const isList = step.endsWith('[]');
  const name = isList ? step.slice(0, -2) : step;
  const entry = map.entries.get(name);
  if (entry === undefined) return map;
  const inside = (node: SourceNode, at: string): SourceNode =>
    node.kind === 'map' ? renameWithin(node, rest, `${at}.`, alias, findings) : node;
  let node = entry.node;
  if (!isList) node = inside(node, path + name);
  else if (node.kind === 'list') {
    node = { ...node, items: node.items.map((item, index) => inside(item, `${path}${name}[${index}]`)) };
  }
  return { ...map, entries: new Map(map.entries).set(name, { ...entry, node }) };
}

function rename(map: SourceMap, path: string, alias: Alias, findings: Findings): SourceMap {
  const entry = map.entries.get(alias.name);
  if (entry === undefined) return map;
  if (alias.old) findings.warn(path + alias.name, `is an old name: use ${path}${alias.option}`, entry.at);
  const entries = new Map(map.entries);
  entries.delete(alias.name);
  const node = alias.convert ? alias.convert(entry.node) : entry.node;
  if (node === undefined) return { ...map, entries };
  const placed = place(entries, alias.option.split('.'), { node, at: entry.at });
  if (!placed) {
    const message = `cannot be given together with ${path}${alias.option}, which it is another name for`;
    findings.error(path + alias.name, message, entry.at);
  }
  return { ...map, entries };
}

/** Puts an entry where it belongs; false when something is there already. */
function place(entries: Map<string, SourceEntry>, steps: readonly string[], entry: SourceEntry): boolean {
  const [step = '', ...rest] = steps;
  const present = entries.get(step);
  if (rest.length === 0) {
    if (present === undefined) entries.set(step, entry);
    return present === undefined;
  }
  if (present !== undefined && present.node.kind !== 'map') return false;
  const inner = new Map(present?.node.kind === 'map' ? present.node.entries : []);
  const placed = place(inner, rest, entry);
  entries.set(step, { at: present?.at ?? entry.at, node: { kind: 'map', entries: inner, at: entry.at } });
  return placed;
}

function stepsOf(within: string | undefined): readonly string[] {
  return within === undefined ? [] : within.split('.');
}
