import type { Findings } from '../problems.ts';
import type { DocumentTransform, SourceEntry, SourceMap, SourceNode } from './source.ts';

/** Another name under which a document may give an option. */
export interface Alias {
  /** The other name, for example `riot_base_url`. */
  readonly name: string;
  /** The mapping or list items that contain both names, for example `listeners[]`; absent for the whole document. */
  readonly within?: string;
  /** Path of the option, relative to `within`. */
  readonly option: string;
  /**
   * True for a deprecated name, which is reported by a warning. Another spelling of an option, as other homeservers
   * have it, is not reported.
   */
  readonly old: boolean;
  /**
   * The meaning of this name in a document that also gives the option: the name is then an option of its own, and a
   * warning ends with this text. Absent: giving both names is an error.
   */
  readonly meaningWhenBothAreGiven?: string;
  /** Converts a value of the old form. @returns `undefined` when the value is to be dropped */
  readonly convert?: (node: SourceNode) => SourceNode | undefined;
}

/**
 * Moves values given under other names to their options. Reports an error for an option given under two
 * names.
 */
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
  const [step, ...innerSteps] = steps;
  if (step === undefined) return rename(map, path, alias, findings);
  const isList = step.endsWith('[]');
  const name = isList ? step.slice(0, -2) : step;
  const entry = map.entries.get(name);
  if (entry === undefined) return map;
  const inside = (node: SourceNode, at: string): SourceNode =>
    node.kind === 'map' ? renameWithin(node, innerSteps, `${at}.`, alias, findings) : node;
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
  if (alias.meaningWhenBothAreGiven !== undefined && map.entries.has(alias.option)) {
    const message = `is an old name, given together with ${path}${alias.option}: ${alias.meaningWhenBothAreGiven}`;
    findings.warn(path + alias.name, message, entry.at);
    return map;
  }
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

/** Sets an entry at its path. Returns false when the path is taken. */
function place(entries: Map<string, SourceEntry>, steps: readonly string[], entry: SourceEntry): boolean {
  const [step = '', ...innerSteps] = steps;
  const existing = entries.get(step);
  if (innerSteps.length === 0) {
    if (existing === undefined) entries.set(step, entry);
    return existing === undefined;
  }
  if (existing !== undefined && existing.node.kind !== 'map') return false;
  const inner = new Map(existing?.node.kind === 'map' ? existing.node.entries : []);
  const placed = place(inner, innerSteps, entry);
  entries.set(step, { at: existing?.at ?? entry.at, node: { kind: 'map', entries: inner, at: entry.at } });
  return placed;
}

function stepsOf(within: string | undefined): readonly string[] {
  return within === undefined ? [] : within.split('.');
}
