import { resolve } from 'node:path';
import type { DocumentTransform, SourceMap, SourceNode } from '../kernel/config/index.ts';

/**
 * Replaces relative paths of modules by absolute ones: in `modules`, in the `additional_resources` of listeners, and in
 * `user_mapping_provider`. A name that does not begin with `./` or `../` stays: it is an absolute path or the name of a
 * package.
 * @param directory the directory of the configuration; the paths are relative to it
 */
export function absoluteModulePaths(directory: string): DocumentTransform {
  const inModule = (node: SourceNode) => inMember(node, 'module', (name) => absolute(name, directory));
  const inListener = (node: SourceNode) =>
    inMember(node, 'additional_resources', (resources) => inAll(resources, inModule));
  const inProvider = (node: SourceNode) => inMember(node, 'user_mapping_provider', inModule);
  const changes: readonly (readonly [option: string, change: Change])[] = [
    ['modules', (list) => inAll(list, inModule)],
    ['listeners', (list) => inAll(list, inListener)],
    ['oidc_providers', (list) => inAll(list, inProvider)],
    ['saml2_config', inProvider],
  ];
  return (document) =>
    changes.reduce((map, [option, change]) => inMemberOfMap(map, option, change), document);
}

function absolute(node: SourceNode, directory: string): SourceNode {
  if (node.kind !== 'scalar' || typeof node.value !== 'string' || !/^\.\.?\//.test(node.value)) return node;
  const path = resolve(directory, node.value);
  return { ...node, value: path, text: path };
}

type Change = (node: SourceNode) => SourceNode;

/** Returns a map with its member `name` changed; returns any other node unchanged. */
const inMember = (node: SourceNode, name: string, change: Change): SourceNode =>
  node.kind === 'map' ? inMemberOfMap(node, name, change) : node;

function inMemberOfMap(map: SourceMap, name: string, change: Change): SourceMap {
  const entry = map.entries.get(name);
  if (entry === undefined) return map;
  return { ...map, entries: new Map(map.entries).set(name, { ...entry, node: change(entry.node) }) };
}

/** Changes the items of a list, or the members of a map. */
function inAll(node: SourceNode, change: Change): SourceNode {
  if (node.kind === 'list') return { ...node, items: node.items.map(change) };
  if (node.kind === 'scalar') return node;
  return [...node.entries.keys()].reduce((map, name) => inMemberOfMap(map, name, change), node);
}
