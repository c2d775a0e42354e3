import { hash } from 'node:crypto';
import type { IntrospectedToken, TokenIntrospection } from '../../accounts/index.ts';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { OutboundHttp } from '../../kernel/outbound/index.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';
import { isJsonObject, type JsonObject, limitExceeded, MatrixError } from '../../protocol/index.ts';
import { readIntrospection } from './introspection.ts';
import { ServiceBackoff } from './service-backoff.ts';

export interface AuthenticationServiceDeps {
  readonly http: Pick<OutboundHttp, 'fetch'>;
  readonly clock: Clock;
  readonly caches: CacheRegistry;
  readonly log: Logger;
  readonly serverName: string;
}

export interface AuthenticationServiceOptions {
  /** URL of the service. */
  readonly endpoint: string;
  /** The secret that this server and the service present to each other. */
  readonly secret: string;
}

/** Milliseconds for which an answer about a token is cached. */
const tokenAge = 120_000;

/** Milliseconds for which the metadata is cached. */
const metadataAge = 600_000;

/** Timeout of a request in milliseconds. */
const timeout = 10_000;

/** Maximum bytes of a response. */
const maxBody = 1_048_576;

/** Maximum number of cached invalid tokens. */
const maxInvalidTokens = 800;

/** Maximum number of concurrent introspections. */
const maxConcurrent = 64;

/** Rate limit of the invalid tokens that one client address sends. */
const invalidTokenRate = { per_second: 1, burst_count: 50 };

/**
 * Statuses that mean that the service refuses one request, for example because of a token that is too long. They say
 * nothing about other requests.
 */
const statusesOfRefusal: ReadonlySet<number> = new Set([400, 413, 414, 422, 431]);

const hashOf = (token: string) => hash('sha256', token, 'base64url');

/**
 * Introspects tokens at a separate authentication service, and reads its metadata. Source: RFC 7662, RFC
 * 8414.
 */
export class AuthenticationService implements TokenIntrospection {
  readonly #deps: AuthenticationServiceDeps;
  readonly #options: AuthenticationServiceOptions;
  /** Digests of invalid tokens, with the time until which they are not introspected again. */
  readonly #invalidTokens: Cache<string, number>;
  readonly #metadataReads = new LoadOnce<'metadata', JsonObject>();
  readonly #invalidTokenLimiter: RateLimiter;
  /** The backoffs are separate, because a service may answer one kind of request and not the other. */
  readonly #backoff: Readonly<Record<'introspection' | 'metadata', ServiceBackoff>>;
  #introspections = 0;
  #metadata: { readonly value: JsonObject; readonly until: number } | undefined;

  constructor(deps: AuthenticationServiceDeps, options: AuthenticationServiceOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#invalidTokenLimiter = new RateLimiter(invalidTokenRate, deps.clock);
    const { clock } = deps;
    this.#backoff = { introspection: new ServiceBackoff(clock), metadata: new ServiceBackoff(clock) };
    this.#invalidTokens = deps.caches.create('refused_tokens', {
      size: maxInvalidTokens,
      maxBytes: MiB / 8,
      sizeOf: () => 150,
    });
  }

  /**
   * Returns the answer of the service about an access token; `undefined` when the token is not valid.
   * @param ip address of the client
   * @throws MatrixError 503 when the service gives no usable answer, or is not asked because it failed repeatedly; 500
   * when its answer names no user or no valid device; M_LIMIT_EXCEEDED when the client has sent too many invalid
   * tokens, or too many introspections are running
   */
  async introspect(token: string, ip: string): Promise<IntrospectedToken | undefined> {
    const key = hashOf(token);
    const now = this.#deps.clock.now();
    if ((this.#invalidTokens.get(key) ?? 0) > now) return undefined;
    this.#invalidTokenLimiter.check(ip);
    if (this.#introspections >= maxConcurrent) throw limitExceeded(1_000);
    this.#introspections += 1;
    try {
      const introspection = await this.#requestIntrospection(token, ip);
      if (introspection === undefined) {
        this.#invalidTokens.set(key, this.#deps.clock.now() + tokenAge);
        this.#invalidTokenLimiter.tryTake(ip);
      }
      return introspection;
    } finally {
      this.#introspections -= 1;
    }
  }

  /**
   * Returns the metadata of the service, up to ten minutes old, or older while the service does not answer.
   * @throws MatrixError 503 when there is neither an answer nor an earlier one
   */
  async metadata(): Promise<JsonObject> {
    const { clock } = this.#deps;
    if (this.#metadata !== undefined && this.#metadata.until > clock.now()) return this.#metadata.value;
    try {
      const value = await this.#metadataReads.run('metadata', () => this.#readMetadata());
      this.#metadata = { value, until: clock.now() + metadataAge };
      return value;
    } catch (error) {
      if (this.#metadata === undefined) throw error;
      return this.#metadata.value;
    }
  }

  /** Returns the URL of the page on which users manage their account. @throws MatrixError 503 */
  async accountUrl(): Promise<string> {
    const { account_management_uri: uri } = await this.metadata();
    return typeof uri === 'string' ? uri : this.#url('account/');
  }

  /** Whether a request presents the secret that this server and the service share. */
  isSharedSecret(secret: string): boolean {
    return hashOf(secret) === hashOf(this.#options.secret);
  }

  async #requestIntrospection(token: string, ip: string): Promise<IntrospectedToken | undefined> {
    const body = new URLSearchParams({ token, token_type_hint: 'access_token' }).toString();
    const answer = await this.#request('introspection', 'oauth2/introspect', {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        authorization: `Bearer ${this.#options.secret}`,
        // With this header the service also names the device of a session that was opened by the older login
        // API.
        'x-mas-supports-device-id': '1',
      },
      refused: () => this.#invalidTokenLimiter.tryTake(ip),
    });
    const { clock, serverName } = this.#deps;
    return readIntrospection(answer, { now: clock.now(), serverName, maxAge: tokenAge });
  }

  async #readMetadata(): Promise<JsonObject> {
    const metadata = await this.#request('metadata', '.well-known/openid-configuration', { method: 'GET' });
    if (typeof metadata['issuer'] !== 'string') throw this.#failed('metadata', 'it has no issuer');
    return metadata;
  }

  async #request(
    kind: 'introspection' | 'metadata',
    path: string,
    { refused, ...request }: ServiceRequest,
  ): Promise<JsonObject> {
    const { http } = this.#deps;
    if (this.#backoff[kind].remaining > 0) throw unavailable();
    const response = await http
      .fetch(new URL(this.#url(path)), { ...request, timeout, maxBody })
      .catch((error: unknown) => {
        throw this.#failed(kind, error instanceof Error ? error.message : 'no response');
      });
    if (refused && statusesOfRefusal.has(response.status)) {
      this.#deps.log.warn({ kind, status: response.status }, 'The authentication service refuses a request');
      refused();
      throw unavailable();
    }
    if (response.status !== 200) throw this.#failed(kind, `status ${response.status}`);
    const parsed = parseJson(response.body.toString());
    if (!isJsonObject(parsed)) throw this.#failed(kind, 'the response is not a JSON object');
    this.#backoff[kind].succeeded();
    return parsed;
  }

  #url(path: string): string {
    return `${this.#options.endpoint.replace(/\/+$/, '')}/${path}`;
  }

  /** Logs a failure, without naming the token, and counts it. */
  #failed(kind: 'introspection' | 'metadata', reason: string): MatrixError {
    this.#deps.log.error({ kind, reason }, 'A request to the authentication service failed');
    this.#backoff[kind].failed();
    return unavailable();
  }
}

interface ServiceRequest {
  readonly method: 'GET' | 'POST';
  readonly body?: string;
  readonly headers?: Record<string, string>;
  /** Called when the service refuses only this request. Such a refusal is not a failure of the service. */
  readonly refused?: () => void;
}

const unavailable = () =>
  new MatrixError(503, 'M_UNKNOWN', 'The authentication service gives no usable answer');

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
