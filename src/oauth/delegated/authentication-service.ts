import { hash } from 'node:crypto';
import type { IntrospectedToken, TokenIntrospection } from '../../accounts/index.ts';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { OutboundHttp } from '../../kernel/outbound/index.ts';
import { isJsonObject, type JsonObject, MatrixError } from '../../protocol/index.ts';
import { readIntrospection } from './introspection.ts';

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

/** Milliseconds for which an answer about a token is cached, and for which the metadata is cached. */
const [tokenAge, metadataAge] = [120_000, 600_000];

/** Timeout of a request in milliseconds, and maximum bytes of its response. */
const [timeout, maxBody] = [10_000, 1_048_576];

/** Maximum number of cached refusals. */
const maxRefused = 800;

const hashOf = (token: string) => hash('sha256', token, 'base64url');

/**
 * Introspects tokens at a separate authentication service, and reads its metadata. Source: RFC 7662, RFC
 * 8414.
 */
export class AuthenticationService implements TokenIntrospection {
  readonly #deps: AuthenticationServiceDeps;
  readonly #options: AuthenticationServiceOptions;
  /** Digests of invalid tokens, with the time until which they are not introspected again. */
  readonly #refused: Cache<string, number>;
  readonly #reading = new LoadOnce<'metadata', JsonObject>();
  #metadata: { readonly value: JsonObject; readonly until: number } | undefined;

  constructor(deps: AuthenticationServiceDeps, options: AuthenticationServiceOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#refused = deps.caches.create('refused_tokens', {
      size: maxRefused,
      maxBytes: MiB / 8,
      sizeOf: () => 150,
    });
  }

  /**
   * Returns the answer of the service about an access token; `undefined` when the token is not valid.
   * @throws MatrixError 503 when the service does not answer
   */
  async introspect(token: string): Promise<IntrospectedToken | undefined> {
    const key = hashOf(token);
    const now = this.#deps.clock.now();
    if ((this.#refused.get(key) ?? 0) > now) return undefined;
    const found = await this.#ask(token);
    if (found === undefined) this.#refused.set(key, this.#deps.clock.now() + tokenAge);
    return found;
  }

  /**
   * Returns the metadata of the service, up to ten minutes old, or older while the service does not answer.
   * @throws MatrixError 503 when the service has never answered
   */
  async metadata(): Promise<JsonObject> {
    const { clock } = this.#deps;
    if (this.#metadata !== undefined && this.#metadata.until > clock.now()) return this.#metadata.value;
    try {
      const value = await this.#reading.run('metadata', () => this.#readMetadata());
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

  /** Whether a request of the service presents the secret. */
  isOwnSecret(secret: string): boolean {
    return hashOf(secret) === hashOf(this.#options.secret);
  }

  async #ask(token: string): Promise<IntrospectedToken | undefined> {
    const body = new URLSearchParams({ token, token_type_hint: 'access_token' }).toString();
    const answer = await this.#request('oauth2/introspect', {
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
    });
    const { clock, serverName } = this.#deps;
    return readIntrospection(answer, { now: clock.now(), serverName, maxAge: tokenAge });
  }

  async #readMetadata(): Promise<JsonObject> {
    const metadata = await this.#request('.well-known/openid-configuration', { method: 'GET' });
    if (typeof metadata['issuer'] !== 'string') throw this.#failed('its metadata has no issuer');
    return metadata;
  }

  async #request(
    path: string,
    request: { method: 'GET' | 'POST'; body?: string; headers?: Record<string, string> },
  ): Promise<JsonObject> {
    const { http } = this.#deps;
    const response = await http
      .fetch(new URL(this.#url(path)), { ...request, timeout, maxBody })
      .catch((error: unknown) => {
        throw this.#failed(error instanceof Error ? error.message : 'no response');
      });
    if (response.status !== 200) throw this.#failed(`status ${response.status}`);
    const parsed = parseJson(response.body.toString());
    if (!isJsonObject(parsed)) throw this.#failed('the response is not JSON');
    return parsed;
  }

  #url(path: string): string {
    return `${this.#options.endpoint.replace(/\/+$/, '')}/${path}`;
  }

  /** Logs a failure, without the token. */
  #failed(reason: string): MatrixError {
    this.#deps.log.error({ reason }, 'The authentication service does not answer');
    return new MatrixError(503, 'M_UNKNOWN', 'The authentication service does not answer');
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
