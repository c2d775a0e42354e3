import { RecentlyUsed } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { OutboundError, type Resolver, type SrvRecord } from '../../kernel/outbound/index.ts';
import type { Randomness } from '../../kernel/randomness.ts';
import { defaultPort, type Endpoint, explicitEndpoint, partsOf } from './endpoint.ts';
import { orderBySrv } from './srv-order.ts';
import type { WellKnown } from './well-known.ts';

/** Of how many hosts, and for how many milliseconds, the places of services are remembered. */
const [maxCached, cacheMs] = [20_000, 300_000];

/** How many targets of a service are tried. */
const maxEndpoints = 8;

export interface DiscoveryDeps {
  readonly wellKnown: WellKnown;
  readonly resolver: Resolver;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** Finds out where servers are. Source: server-server API, "Resolving server names". */
export class Discovery {
  readonly #deps: DiscoveryDeps;
  readonly #services: RecentlyUsed<string, Promise<readonly Endpoint[]>>;

  constructor(deps: DiscoveryDeps) {
    this.#deps = deps;
    const now = () => deps.clock.monotonic() + 1;
    this.#services = new RecentlyUsed({ max: maxCached, ttl: cacheMs, ttlResolution: 0, perf: { now } });
  }

  /**
   * The places where a server may be reached, to be tried in this order; at least one.
   * @throws TypeError for what is no server name
   * @throws OutboundError `unknown-host` when name servers say that the service is not offered
   */
  async endpointsOf(serverName: string): Promise<readonly Endpoint[]> {
    const parts = partsOf(serverName);
    const place = explicitEndpoint(serverName, parts);
    if (place !== undefined) return [place];
    const delegate = await this.#deps.wellKnown.delegateOf(parts.host);
    if (delegate === undefined) return this.#byService(parts.host);
    const delegated = partsOf(delegate);
    const delegatedPlace = explicitEndpoint(delegate, delegated);
    return delegatedPlace === undefined ? this.#byService(delegated.host) : [delegatedPlace];
  }

  /** Steps 3.3 to 3.5 and 4 to 6. */
  #byService(host: string): Promise<readonly Endpoint[]> {
    const known = this.#services.get(host);
    if (known !== undefined) return known;
    const found = this.#lookUp(host).catch((error: unknown) => {
      this.#services.delete(host);
      throw error;
    });
    this.#services.set(host, found);
    return found;
  }

  async #lookUp(host: string): Promise<readonly Endpoint[]> {
    for (const service of ['_matrix-fed._tcp', '_matrix._tcp']) {
      const records = await this.#records(`${service}.${host}`, host);
      if (records.length === 0) continue;
      const targets = records.filter(({ name }) => name !== '' && name !== '.');
      if (targets.length === 0) throw new OutboundError('unknown-host', `${host} is not a server`);
      return orderBySrv(targets, this.#deps.randomness)
        .slice(0, maxEndpoints)
        .map(({ name, port }) => ({ host: name, port, tlsName: host, authority: host }));
    }
    return [{ host, port: defaultPort, tlsName: host, authority: host }];
  }

  /**
   * Name servers that fail are taken to have no record, because some always do for services; the next request asks
   * them again. Whoever answers at the wrong place has no certificate for the host.
   */
  async #records(name: string, host: string): Promise<readonly SrvRecord[]> {
    try {
      return await this.#deps.resolver.services(name);
    } catch {
      this.#services.delete(host);
      return [];
    }
  }
}
