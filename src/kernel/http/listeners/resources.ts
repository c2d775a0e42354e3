import type { resourceNames } from './listener-options.ts';

/** Names of the APIs that a listener can serve (option `listeners[].resources[].names`). */
export type ResourceName = (typeof resourceNames)[number];

/** Resources that a resource includes. */
const impliedResources: Partial<Record<ResourceName, readonly ResourceName[]>> = {
  client: ['media', 'static'],
  federation: ['media', 'keys', 'openid'],
};

/**
 * Path prefixes of each resource, spelled as in the declarations of routes (`/_proto`, see `namespaces.ts`). A prefix
 * ends at a path segment; `/` stands for that path alone.
 */
const prefixes: Record<ResourceName, readonly string[]> = {
  client: [
    '/',
    '/_proto/client',
    '/_server/client',
    '/_server/admin',
    '/_server/mas',
    '/.well-known/proto',
    '/.well-known/oauth-authorization-server',
    '/.well-known/openid-configuration',
  ],
  consent: ['/_proto/consent'],
  federation: ['/_proto/federation', '/.well-known/proto/server'],
  keys: ['/_proto/key'],
  media: ['/_proto/media', '/_proto/client/v1/media', '/_proto/federation/v1/media'],
  metrics: ['/_server/metrics', '/metrics'],
  openid: ['/_proto/federation/v1/openid'],
  replication: ['/_server/replication'],
  static: ['/_proto/static'],
  health: ['/health'],
};

/** The resources whose responses `compress` applies to. */
const compressible: ReadonlySet<ResourceName> = new Set(['client', 'consent', 'metrics', 'federation']);

export interface ListenerResource {
  readonly names: readonly ResourceName[];
  /** Whether responses are compressed with gzip for clients that accept it. */
  readonly compress: boolean;
}

/** Whether and how a listener serves a path: not at all, uncompressed, or with gzip. */
export type Service = 'none' | 'plain' | 'gzip';

/** Returns how a listener with these resources serves a path. Every listener serves the health check. */
export function serviceOf(resources: readonly ListenerResource[], path: string): Service {
  let service: Service = serves('health', path) ? 'plain' : 'none';
  for (const { names, compress } of resources) {
    for (const name of names) {
      if (compress && compressible.has(name) && serves(name, path)) return 'gzip';
      if (serves(name, path) || impliedResources[name]?.some((other) => serves(other, path)))
        service = 'plain';
    }
  }
  return service;
}

const serves = (name: ResourceName, path: string) =>
  prefixes[name].some((prefix) => path.startsWith(prefix) && isUnder(path, prefix));

/** Whether a path that begins with a prefix is the prefix itself, or continues with another segment. */
const isUnder = (path: string, prefix: string) =>
  path.length === prefix.length || (prefix !== '/' && path[prefix.length] === '/');
