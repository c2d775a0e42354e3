import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { OutboundError, type OutboundHttp, type OutboundResponse } from '../../kernel/outbound/index.ts';
import { isServerName, parseJsonObject } from '../../protocol/index.ts';
import { spell, spellingsToTry } from '../spelling.ts';
import type { FederationTls } from '../tls.ts';
import { cachePeriod, periods } from './cache-period.ts';

/** Maximum bytes of the document. */
const maxBody = 50 * 1024;

/** Maximum number of redirects. */
const redirects = 5;

/** Milliseconds until a request fails. */
const timeout = 10_000;

/** Maximum number of cached hosts. */
const maxCached = 20_000;

/** Milliseconds until a look-up is repeated after its first transient failure; doubled up to `periods.error`. */
const minRetryDelay = 120_000;

interface Entry {
  /** Absent when the host does not delegate. */
  readonly delegate: string | undefined;
  /** When the host is requested again, in milliseconds since the epoch. */
  readonly until: number;
  /** When the delegation was last read from the host, in milliseconds since the epoch. */
  readonly readAt: number | undefined;
  /** Milliseconds until the host is requested again if the next request fails for a transient reason. */
  readonly retryDelay: number;
}

export interface WellKnownDeps {
  readonly caches: CacheRegistry;
  readonly http: OutboundHttp;
  readonly tls: FederationTls;
  readonly clock: Clock;
}

/**
 * Reads and caches delegations by `/.well-known/matrix/server`, including the fact that a server does not delegate.
 * Concurrent callers share one look-up.
 * Source: server-server API, "Resolving server names", step 3.
 */
export class WellKnown {
  readonly #deps: WellKnownDeps;
  readonly #entries: Cache<string, Entry>;
  readonly #loading = new LoadOnce<string, Entry>();

  constructor(deps: WellKnownDeps) {
    this.#deps = deps;
    this.#entries = deps.caches.create('federation_well_known', {
      size: maxCached,
      maxBytes: 3 * MiB,
      sizeOf: () => 100,
    });
  }

  /** Returns the server name that a host delegates to, or `undefined`. Never rejects. */
  async delegateOf(host: string): Promise<string | undefined> {
    const cached = this.#entries.get(host);
    if (cached !== undefined && cached.until > this.#deps.clock.now()) return cached.delegate;
    const keep = (entry: Entry) => this.#entries.set(host, entry);
    return (await this.#loading.run(host, () => this.#read(host, cached), keep)).delegate;
  }

  async #read(host: string, before: Entry | undefined): Promise<Entry> {
    try {
      const response = await this.#fetch(host);
      const now = this.#deps.clock.now();
      const delegate = delegateIn(response);
      if (delegate !== undefined) {
        const until = now + cachePeriod(response.headers, now);
        return { delegate, until, readAt: now, retryDelay: minRetryDelay };
      }
      if (response.status < 500 && response.status !== 429) return this.#noDelegation();
    } catch (error) {
      if (!(error instanceof OutboundError && error.isTransient)) return this.#noDelegation();
    }
    return this.#afterFailure(before);
  }

  /** Requests `/.well-known/matrix/server` first, and after a 404 `/.well-known/proto/server`. */
  async #fetch(host: string): Promise<OutboundResponse> {
    const [first, second] = spellingsToTry(undefined).map((spelling) => {
      const url = new URL(`https://${host}${spell('/.well-known/proto/server', spelling)}`);
      return () => this.#deps.http.fetch(url, { timeout, maxBody, redirects, tls: this.#deps.tls(host) });
    });
    const response = await first!();
    return response.status === 404 ? second!() : response;
  }

  #noDelegation(): Entry {
    const until = this.#deps.clock.now() + periods.error;
    return { delegate: undefined, until, readAt: undefined, retryDelay: minRetryDelay };
  }

  /** Keeps the previous delegation after a transient failure, until its maximum age. */
  #afterFailure(before: Entry | undefined): Entry {
    const now = this.#deps.clock.now();
    const retryDelay = before?.retryDelay ?? minRetryDelay;
    const next = { until: now + retryDelay, retryDelay: Math.min(2 * retryDelay, periods.error) };
    const keepsDelegation = before?.readAt !== undefined && now - before.readAt < periods.max;
    return keepsDelegation
      ? { ...next, delegate: before.delegate, readAt: before.readAt }
      : { ...next, delegate: undefined, readAt: undefined };
  }
}

function delegateIn({ status, body }: OutboundResponse): string | undefined {
  if (status !== 200) return undefined;
  try {
    const delegate = parseJsonObject(body)['m.server'];
    return isServerName(delegate) ? delegate : undefined;
  } catch {
    return undefined;
  }
}
