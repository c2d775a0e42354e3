import { Pool } from 'undici';
import { RecentlyUsed } from '../caches/index.ts';
import type { AddressPolicy } from './address-policy.ts';
import { directConnector, tunnelConnector } from './connectors.ts';
import { type Proxies, proxyAuthorization } from './proxies.ts';
import type { Resolver } from './resolver.ts';
import { hostAndPort, type Target } from './target.ts';

/** Servers to which connections are kept, connections to each, and milliseconds for which an idle one stays open. */
const [maxPools, connections, keepAliveTimeout] = [1_000, 16, 20_000];

/** A way to a target: the pool to use, and what must be said differently on the way. */
export interface Way {
  readonly pool: Pool;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PoolsDeps {
  readonly resolver: Resolver;
  readonly policy: AddressPolicy;
  readonly proxies: Proxies;
}

/** Connections that are kept open, by where they lead and whom they were opened to. */
export class Pools {
  readonly #deps: PoolsDeps;
  readonly #pools = new RecentlyUsed<string, Pool>({
    max: maxPools,
    dispose: (pool) => void pool.close().catch(() => undefined),
  });

  constructor(deps: PoolsDeps) {
    this.#deps = deps;
  }

  /** The way to a target; use it before anything else is awaited. */
  wayTo(target: Target): Way {
    const proxy = this.#deps.proxies.for(target.tls !== undefined, target.host);
    if (proxy === undefined) {
      const { resolver, policy } = this.#deps;
      const pool = this.#pool(keyOf(target), () => directConnector(target, resolver, policy));
      return { pool, path: target.path, headers: {} };
    }
    if (target.tls !== undefined) {
      const pool = this.#pool(`tunnel ${keyOf(target)}`, () => tunnelConnector(target, proxy));
      return { pool, path: target.path, headers: {} };
    }
    return {
      pool: this.#toProxy(proxy),
      path: `http://${hostAndPort(target)}${target.path}`,
      headers: proxyAuthorization(proxy),
    };
  }

  /** Cuts all connections. */
  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    await Promise.all(pools.map((pool) => pool.destroy()));
    this.#pools.clear();
  }

  #toProxy({ origin }: URL): Pool {
    return this.#keep(
      `proxy ${origin}`,
      () => new Pool(origin, { connections, keepAliveTimeout, allowH2: false }),
    );
  }

  #pool(key: string, connector: () => ReturnType<typeof directConnector>): Pool {
    // The origin has no meaning: the connector alone knows where to go.
    const origin = key.includes('https') ? 'https://target.invalid' : 'http://target.invalid';
    return this.#keep(
      key,
      () =>
        new Pool(origin, {
          connections,
          keepAliveTimeout,
          allowH2: false,
          connect: connector(),
          headersTimeout: 0,
          bodyTimeout: 0,
        }),
    );
  }

  #keep(key: string, make: () => Pool): Pool {
    const known = this.#pools.get(key);
    if (known !== undefined) return known;
    const pool = make();
    this.#pools.set(key, pool);
    return pool;
  }
}

/** The `Host` header counts too: on a connection to one name no other is asked for. */
const keyOf = (target: Target) =>
  target.tls
    ? `https ${hostAndPort(target)} ${target.tlsName ?? ''} ${target.authority} ${target.tls.id}`
    : `http ${hostAndPort(target)} ${target.authority}`;
