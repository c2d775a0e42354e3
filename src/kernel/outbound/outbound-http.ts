import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { CacheRegistry } from '../caches/index.ts';
import type { Clock } from '../clock.ts';
import { AddressPolicy } from './address-policy.ts';
import { acceptedEncodings, decodeBody, readAll } from './body.ts';
import type { OutboundConfig } from './config.ts';
import { Deadline } from './deadline.ts';
import { OutboundError, toOutboundError } from './errors.ts';
import { Pools } from './pools.ts';
import { Proxies } from './proxies.ts';
import { redirectedHeaders, redirectOf } from './redirects.ts';
import { type Resolver, systemResolver } from './resolver.ts';
import { type Target, targetOf } from './target.ts';
import { TlsSettings } from './tls-settings.ts';
import { userAgent } from './user-agent.ts';

export interface OutboundRequest {
  /** `GET` when absent. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | Readable;
  /** Milliseconds for the whole exchange: redirects, and the body to its end. */
  readonly timeout: number;
  /** Maximum bytes of the response body after decompression. */
  readonly maxBody: number;
  /** Maximum number of redirects of a GET to follow. When absent, the redirect itself is the response. */
  readonly redirects?: number;
  /** Whether a redirect to a URL may be followed; by default each one may. */
  readonly mayFollow?: (to: URL) => boolean;
  readonly signal?: AbortSignal | undefined;
  /**
   * Called by `fetch` and `send` with each chunk of the response body, when it arrives. If this throws an
   * OutboundError, the request fails with it, and the rest of the body is not read.
   */
  readonly inspect?: (chunk: Buffer) => void;
  /** Replaces the certificate authorities and TLS versions of the machine. */
  readonly tls?: TlsSettings | undefined;
}

export interface OutboundResponse<Body = Buffer> {
  readonly status: number;
  /** Values by header name in lowercase. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Body;
}

/** A response and the URL of the last request, after redirects. */
export type FetchedResponse<Body = Buffer> = OutboundResponse<Body> & { readonly url: URL };

export interface OutboundHttpOptions {
  readonly caches: CacheRegistry;
  /** Name of the cache that holds the connection pools. */
  readonly name?: string;
  /** Maximum number of targets to which connections stay open. */
  readonly maxPools?: number;
  readonly config: OutboundConfig;
  readonly clock: Clock;
  readonly resolver?: Resolver;
  /** For requests without `tls`; by default the certificate authorities of the machine. */
  readonly tls?: TlsSettings | undefined;
  /** Sends requests by HTTP/2, also without TLS. By default they are sent by HTTP/1.1. */
  readonly http2?: boolean;
}

/**
 * Sends all outbound requests: with bounds on time and size, and to allowed addresses only, or through the proxy if
 * one is configured. Retries nothing.
 */
export class OutboundHttp {
  readonly #clock: Clock;
  readonly #pools: Pools;
  readonly #userAgent: string;
  readonly #tls: TlsSettings;
  #isClosed = false;

  constructor({
    config,
    clock,
    caches,
    name = 'connection_pools',
    maxPools,
    resolver = systemResolver,
    tls,
    http2 = false,
  }: OutboundHttpOptions) {
    this.#clock = clock;
    this.#tls = tls ?? new TlsSettings({ verify: true });
    this.#userAgent = userAgent(config.user_agent_suffix);
    const policy = new AddressPolicy({
      refused: config.ip_range_blacklist,
      allowed: config.ip_range_whitelist,
    });
    this.#pools = new Pools({
      caches,
      name,
      resolver,
      policy,
      proxies: new Proxies(config),
      http2,
      maxPools,
    });
  }

  /** Sends a request to a URL and reads the response, whatever its status. @throws OutboundError */
  async fetch(url: URL, request: OutboundRequest): Promise<FetchedResponse> {
    const response = await this.open(url, request);
    return { ...response, body: await this.#read(response.body, request.inspect) };
  }

  /**
   * Like `fetch`, with the body as a stream. The timeout continues until the body ends or is destroyed; the
   * caller must make one of the two happen.
   * @throws OutboundError; the stream fails with one, too
   */
  async open(url: URL, request: OutboundRequest): Promise<FetchedResponse<Readable>> {
    return this.#withDeadline(request, async (deadline) => {
      const { method = 'GET', redirects = 0 } = request;
      const follows = method === 'GET' && redirects > 0;
      let current = url;
      let headers = request.headers ?? {};
      for (let left = redirects; ; left--) {
        const target = targetOf(current, request.tls ?? this.#tls);
        const response = await this.#exchange(target, { ...request, headers }, deadline);
        const location = textOf(response.headers['location']);
        const to = follows ? redirectOf(response.status, location, current) : undefined;
        if (to === undefined) return { ...response, url: current };
        response.body.destroy();
        if (left <= 0) throw new OutboundError('redirect', 'Too many redirects');
        if (request.mayFollow?.(to) === false)
          throw new OutboundError('refused-address', 'Redirected to a refused URL');
        headers = redirectedHeaders(headers, current, to);
        current = to;
      }
    });
  }

  /** Sends a request to an already resolved target and reads the response. @throws OutboundError */
  async send(target: Target, request: OutboundRequest): Promise<OutboundResponse> {
    const response = await this.openTarget(target, request);
    return { ...response, body: await this.#read(response.body, request.inspect) };
  }

  /** Like `send`, with the body as a stream, as `open` returns it. @throws OutboundError */
  openTarget(target: Target, request: OutboundRequest): Promise<OutboundResponse<Readable>> {
    return this.#withDeadline(request, (deadline) => this.#exchange(target, request, deadline));
  }

  /** Closes all connections. Requests in progress fail as `aborted`. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.#pools.close();
  }

  async #read(body: Readable, inspect: OutboundRequest['inspect']): Promise<Buffer> {
    try {
      return await readAll(body, inspect);
    } catch (error) {
      throw this.#failure(error);
    }
  }

  /** Converts the error of a request. After `close` it is `aborted`, so that it does not count as a failure of the other server. */
  #failure(error: unknown): OutboundError {
    const failure = toOutboundError(error);
    if (!this.#isClosed || failure.failure === 'aborted') return failure;
    return new OutboundError('aborted', 'This server is stopping', { cause: error });
  }

  async #withDeadline<R extends OutboundResponse<Readable>>(
    { timeout, signal }: OutboundRequest,
    work: (deadline: Deadline) => Promise<R>,
  ): Promise<R> {
    const deadline = new Deadline(this.#clock, timeout, signal);
    try {
      const response = await work(deadline);
      response.body.once('close', () => deadline.end());
      return response;
    } catch (error) {
      deadline.end();
      throw this.#failure(deadline.signal.aborted ? deadline.signal.reason : error);
    }
  }

  async #exchange(
    target: Target,
    { method = 'GET', headers = {}, body, maxBody }: OutboundRequest,
    { signal }: Deadline,
  ): Promise<OutboundResponse<Readable>> {
    const { pool, path, headers: proxyHeaders } = this.#pools.routeTo(target);
    const response = await pool.request({
      method,
      path,
      headers: {
        host: target.authority,
        'user-agent': this.#userAgent,
        'accept-encoding': acceptedEncodings,
        ...headers,
        ...proxyHeaders,
      },
      ...(body !== undefined && { body }),
      signal,
      // The deadline bounds the whole exchange.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return {
      status: response.statusCode,
      headers: response.headers,
      body: bodyOf(response, method, maxBody),
    };
  }
}

function bodyOf({ body, headers }: Dispatcher.ResponseData, method: string, maxBody: number): Readable {
  try {
    const announced = Number(textOf(headers['content-length']) ?? 0);
    if (announced > maxBody && method !== 'HEAD') {
      throw new OutboundError('too-large', 'The response is larger than the limit');
    }
    const encoding = method === 'HEAD' ? undefined : textOf(headers['content-encoding']);
    return decodeBody(body, encoding, maxBody);
  } catch (error) {
    body.on('error', () => undefined).destroy();
    throw error;
  }
}

/** Returns the value of a header that is expected once. */
const textOf = (value: string | string[] | undefined) => (Array.isArray(value) ? value.join(',') : value);
