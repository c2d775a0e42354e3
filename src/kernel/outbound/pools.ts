import { Pool } from 'undici';
import type { Cache, CacheRegistry } from '../caches/index.ts';
import type { AddressPolicy } from './address-policy.ts';
import { directConnector, tunnelConnector } from './connectors.ts';
import { type Proxies, proxyAuthorization } from './proxies.ts';
import type { Resolver } from './resolver.ts';
import { hostAndPort, type Target } from './target.ts';

/** Default maximum number of servers with open connections. */
const defaultMaxPools = 1_000;

/** Maximum number of connections per server. */
const connections = 16;

/** Milliseconds until an idle connection is closed. */
const keepAliveTimeout = 20_000;

/** Estimated bytes of a pool. */
const poolBytes = 4_000;

/** How to send a request to a target: the pool, and the path and further headers to use. */
export interface PoolRoute {
  readonly pool: Pool;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PoolsDeps {
  /** Maximum number of pools. */
  readonly maxPools?: number | undefined;
  readonly caches: CacheRegistry;
  /** Name of the cache. */
  readonly name: string;
  readonly resolver: Resolver;
  readonly policy: AddressPolicy;
  readonly proxies: Proxies;
  /** Whether requests are sent by HTTP/2. */
  readonly http2: boolean;
}

/** Keeps connections open for reuse, by target and TLS settings. */
export class Pools {
  readonly #deps: PoolsDeps;
  readonly #pools: Cache<string, Pool>;

  constructor(deps: PoolsDeps) {
    this.#deps = deps;
    const { maxPools = defaultMaxPools } = deps;
    this.#pools = deps.caches.create(deps.name, {
      size: maxPools,
      maxBytes: maxPools * poolBytes,
      sizeOf: () => poolBytes,
      onRemove: (pool) => void pool.close().catch(() => undefined),
    });
  }

  /**
   * Returns the route to a target. The request must be sent before any `await`, because the pool may be closed
   * afterwards.
   */
  routeTo(target: Target): PoolRoute {
    const proxy = this.#deps.proxies.for(target.tls !== undefined, target.host);
    if (proxy === undefined) {
      const { resolver, policy, http2 } = this.#deps;
      const pool = this.#pool(target, keyOf(target), () => directConnector(target, resolver, policy, http2));
      return { pool, path: target.path, headers: {} };
    }
    if (target.tls !== undefined) {
      const pool = this.#pool(target, `tunnel ${keyOf(target)}`, () => tunnelConnector(target, proxy));
      return { pool, path: target.path, headers: {} };
    }
    return {
      pool: this.#proxyPool(proxy),
      path: `http://${hostAndPort(target)}${target.path}`,
      headers: proxyAuthorization(proxy),
    };
  }

  /** Closes all connections, also connections in use. */
  async close(): Promise<void> {
    const pools = this.#pools.values();
    await Promise.all(pools.map((pool) => pool.destroy()));
    this.#pools.clear();
  }

  #proxyPool({ origin }: URL): Pool {
    return this.#getOrCreate(
      `proxy ${origin}`,
      () => new Pool(origin, { connections, keepAliveTimeout, allowH2: false }),
    );
  }

  #pool({ tls }: Target, key: string, connector: () => ReturnType<typeof directConnector>): Pool {
    // A placeholder: the connector alone decides where to connect.
    const origin = tls === undefined ? 'http://target.invalid' : 'https://target.invalid';
    return this.#getOrCreate(
      key,
      () =>
        new Pool(origin, {
          connections,
          keepAliveTimeout,
          allowH2: this.#deps.http2,
          ...(this.#deps.http2 && tls === undefined && { useH2c: true }),
          connect: connector(),
          headersTimeout: 0,
          bodyTimeout: 0,
        }),
    );
  }

  #getOrCreate(key: string, make: () => Pool): Pool {
    const known = this.#pools.get(key);
    if (known !== undefined) return known;
    const pool = make();
    this.#pools.set(key, pool);
    return pool;
  }
}

/** The key contains the `Host` header, so a connection to one name is never used for another. */
const keyOf = (target: Target) =>
  target.tls
    ? `https ${hostAndPort(target)} ${target.tlsName ?? ''} ${target.authority} ${target.tls.id}`
    : `http ${hostAndPort(target)} ${target.authority}`;
