import type { HearthConfiguration } from '../configuration.ts';
import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import { OutboundHttp, type Resolver, systemResolver, TlsSettings } from '../kernel/outbound/index.ts';

/** The parts of the kernel that an HTTP client needs. */
export interface OutboundDeps {
  readonly configuration: HearthConfiguration;
  readonly clock: Clock;
  readonly caches: CacheRegistry;
  readonly resolver?: Resolver;
  readonly authorities?: readonly string[];
}

/** Maximum number of servers that one client keeps connections to, unless its caller sets another number. */
const defaultMaxPools = 16;

/**
 * Opens an HTTP client for servers that the configuration names, for instance identity providers and application
 * services. Operators choose these servers, so all addresses are allowed, private ones included.
 * @param name the name of the cache of its connections
 */
export function openHttpToConfiguredServers(
  { configuration, clock, caches, resolver = systemResolver, authorities }: OutboundDeps,
  name: string,
  { http2 = false, maxPools = defaultMaxPools } = {},
): OutboundHttp {
  return new OutboundHttp({
    config: { ...configuration.outbound, ip_range_blacklist: [] },
    clock,
    caches,
    resolver,
    name,
    http2,
    maxPools,
    tls: authorities && new TlsSettings({ verify: true, authorities }),
  });
}
