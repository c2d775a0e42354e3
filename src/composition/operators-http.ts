import { OutboundHttp, systemResolver, TlsSettings } from '../kernel/outbound/index.ts';
import type { Kernel } from './kernel.ts';

/** Maximum number of servers that a feature keeps connections to. */
const defaultMaxPools = 16;

/**
 * Opens requests to servers that the configuration names, for instance identity providers and application services.
 * Operators choose them, so that all addresses are allowed, private ones included.
 * @param name of the cache of connections
 */
export function openOperatorsHttp(
  { configuration, clock, caches, resolver = systemResolver, authorities }: Kernel,
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
