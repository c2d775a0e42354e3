import type { Findings } from '../config/problems.ts';
import {
  type DocumentTransform,
  mapNode,
  type SourceEntry,
  type SourceMap,
  scalarNode,
} from '../config/sources/source.ts';
import { plainCacheName } from './config.ts';

/** Prefixes of the variables; the later one (the documented spelling) overrides the earlier one. */
const prefixes = ['SYNAPSE_CACHE_FACTOR', 'SERVER_CACHE_FACTOR'] as const;

/**
 * Overrides the cache factors of the configuration files by environment variables: `SERVER_CACHE_FACTOR` sets
 * the global factor, `SERVER_CACHE_FACTOR_<NAME>` the factor of one cache.
 */
export function cacheFactorsFromEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
): DocumentTransform {
  return (document, findings) => {
    const factors = readFactors(environment, findings);
    if (factors.size === 0) return document;
    const caches = document.entries.get('caches');
    const members = new Map(caches?.node.kind === 'map' ? caches.node.entries : []);
    const global = factors.get('');
    factors.delete('');
    if (global !== undefined) members.set('global_factor', { node: scalarNode(global) });
    if (factors.size > 0)
      members.set('per_cache_factors', withFactors(members.get('per_cache_factors'), factors));
    const entry = { ...caches, node: { kind: 'map', entries: members } satisfies SourceMap };
    return { ...document, entries: new Map(document.entries).set('caches', entry) };
  };
}

/** Factors by plain cache name; the empty name stands for the global factor. */
function readFactors(
  environment: Readonly<Record<string, string | undefined>>,
  findings: Findings,
): Map<string, number> {
  const factors = new Map<string, number>();
  for (const prefix of prefixes) {
    for (const [variable, text] of Object.entries(environment)) {
      if (text === undefined || (variable !== prefix && !variable.startsWith(`${prefix}_`))) continue;
      if (/^[0-9]+(\.[0-9]+)?$/.test(text))
        factors.set(plainCacheName(variable.slice(prefix.length)), Number(text));
      else {
        const message = `found ${JSON.stringify(text)} in the environment; allowed: a number that is not negative`;
        findings.error(variable, message);
      }
    }
  }
  return factors;
}

function withFactors(present: SourceEntry | undefined, factors: ReadonlyMap<string, number>): SourceEntry {
  const kept = present?.node.kind === 'map' ? [...present.node.entries] : [];
  const others = kept.filter(([name]) => !factors.has(plainCacheName(name)));
  const added = [...factors].map(([name, factor]) => [name, scalarNode(factor)] as const);
  const node = mapNode(added);
  return { ...present, node: { ...node, entries: new Map([...others, ...node.entries]) } };
}
