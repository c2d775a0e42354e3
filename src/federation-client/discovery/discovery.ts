import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { OutboundError, type Resolver, type SrvRecord } from '../../kernel/outbound/index.ts';
import type { Randomness } from '../../kernel/randomness.ts';
import { defaultPort, type Endpoint, explicitEndpoint, partsOf } from './endpoint.ts';
import { orderBySrv } from './srv-order.ts';
import type { WellKnown } from './well-known.ts';

/** Maximum number of hosts whose SRV look-ups are cached. */
const maxCached = 20_000;

/** Milliseconds for which an SRV look-up is cached. */
const cacheMs = 300_000;

/** Maximum number of targets of an SRV look-up that are tried. */
const maxEndpoints = 8;

interface CachedEndpoints {
  readonly endpoints: Promise<readonly Endpoint[]>;
  /** Monotonic milliseconds. */
  readonly until: number;
}

export interface DiscoveryDeps {
  readonly caches: CacheRegistry;
  readonly wellKnown: Pick<WellKnown, 'delegateOf'>;
  readonly resolver: Resolver;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** Resolves server names. Source: server-server API, "Resolving server names". */
export class Discovery {
  readonly #deps: DiscoveryDeps;
  readonly #endpointsByHost: Cache<string, CachedEndpoints>;

  constructor(deps: DiscoveryDeps) {
    this.#deps = deps;
    this.#endpointsByHost = deps.caches.create('federation_endpoints', {
      size: maxCached,
      maxBytes: 4 * MiB,
      sizeOf: () => 300,
      isExpired: ({ until }) => until <= deps.clock.monotonic(),
    });
  }

  /**
   * Returns the possible endpoints of a server, at least one, in the order in which to try them.
   * @throws TypeError for an invalid server name
   * @throws OutboundError `unknown-host` when the SRV record says that the service is not offered
   */
  async endpointsOf(serverName: string): Promise<readonly Endpoint[]> {
    const parts = partsOf(serverName);
    const endpoint = explicitEndpoint(serverName, parts);
    if (endpoint !== undefined) return [endpoint];
    const delegate = await this.#deps.wellKnown.delegateOf(parts.host);
    if (delegate === undefined) return this.#byService(parts.host);
    const delegated = partsOf(delegate);
    const delegatedEndpoint = explicitEndpoint(delegate, delegated);
    return delegatedEndpoint === undefined ? this.#byService(delegated.host) : [delegatedEndpoint];
  }

  /** Finds the endpoints of a host by steps 3.3 to 3.5 and 4 to 6 of the specification. */
  #byService(host: string): Promise<readonly Endpoint[]> {
    const cached = this.#endpointsByHost.get(host);
    if (cached !== undefined) return cached.endpoints;
    const endpoints = this.#lookUp(host).catch((error: unknown) => {
      this.#endpointsByHost.delete(host);
      throw error;
    });
    this.#endpointsByHost.set(host, { endpoints, until: this.#deps.clock.monotonic() + cacheMs });
    return endpoints;
  }

  async #lookUp(host: string): Promise<readonly Endpoint[]> {
    for (const service of ['_matrix-fed._tcp', '_matrix._tcp']) {
      const records = await this.#records(`${service}.${host}`, host);
      if (records.length === 0) continue;
      const targets = records.filter(({ name }) => name !== '' && name !== '.');
      if (targets.length === 0)
        throw new OutboundError('unknown-host', `${host} offers no Matrix federation`);
      return orderBySrv(targets, this.#deps.randomness)
        .slice(0, maxEndpoints)
        .map(({ name, port }) => ({ host: name, port, tlsName: host, authority: host }));
    }
    return [{ host, port: defaultPort, tlsName: host, authority: host }];
  }

  /**
   * Returns SRV records. A failed look-up counts as no record, because some name servers always fail for SRV records,
   * and is not cached. The wrong endpoint that may follow does no harm: it has no valid certificate for the host.
   */
  async #records(name: string, host: string): Promise<readonly SrvRecord[]> {
    try {
      return await this.#deps.resolver.services(name);
    } catch {
      this.#endpointsByHost.delete(host);
      return [];
    }
  }
}
