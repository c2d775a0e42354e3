import type { JSONWebKeySet, JWTPayload, JWTVerifyOptions } from 'jose';
import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';
import { clockTolerance } from './clock-tolerance.ts';
import type { ProviderRequests } from './provider-requests.ts';

/** Milliseconds that keys are cached, so that withdrawn keys do not stay valid. */
const maxAge = 3_600_000;

/** Rate limit of fetching the keys again because a token does not match them. */
const refetchRate = { per_second: 0.1, burst_count: 5 };

/** Codes of failures that may mean that the provider has changed its keys. */
const rotationCodes = new Set(['ERR_JWKS_NO_MATCHING_KEY', 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED']);

/** Verifies tokens with the keys of a provider. Keys are cached for an hour, or until a token does not match them. */
export class ProviderKeys {
  readonly #requests: ProviderRequests;
  readonly #clock: Clock;
  readonly #refetches: RateLimiter;
  readonly #fetching = new LoadOnce<string, JSONWebKeySet>();
  #keys: { readonly uri: string; readonly set: JSONWebKeySet; readonly readAt: number } | undefined;

  constructor(requests: ProviderRequests, clock: Clock) {
    this.#requests = requests;
    this.#clock = clock;
    this.#refetches = new RateLimiter(refetchRate, clock);
  }

  /**
   * Returns the claims of a signed token. Symmetric algorithms and `none` are refused.
   * @param uri the `jwks_uri` of the provider
   * @throws Error
   */
  async verify(token: string, uri: string, options: JWTVerifyOptions): Promise<JWTPayload> {
    const cached = this.#cached(uri);
    try {
      return await this.#verify(token, cached ?? (await this.#fetch(uri)), options);
    } catch (error) {
      const { code } = error as { code?: string };
      if (cached === undefined || code === undefined || !rotationCodes.has(code)) throw error;
      this.#refetches.take(uri);
      return this.#verify(token, await this.#fetch(uri), options);
    }
  }

  #cached(uri: string): JSONWebKeySet | undefined {
    if (this.#keys?.uri !== uri || this.#clock.now() - this.#keys.readAt >= maxAge) return undefined;
    return this.#keys.set;
  }

  /** Fetches the keys; the cached keys stay until the new keys have arrived. @throws Error */
  #fetch(uri: string): Promise<JSONWebKeySet> {
    return this.#fetching.run(uri, async () => {
      const set = (await this.#requests.json(uri)) as unknown as JSONWebKeySet;
      this.#keys = { uri, set, readAt: this.#clock.now() };
      return set;
    });
  }

  async #verify(token: string, keys: JSONWebKeySet, options: JWTVerifyOptions): Promise<JWTPayload> {
    const { createLocalJWKSet, jwtVerify } = await import('jose');
    const algorithms = options.algorithms?.filter((algorithm) => !/^(HS|none)/i.test(algorithm));
    const { payload } = await jwtVerify(token, createLocalJWKSet(keys), {
      ...options,
      ...(algorithms && { algorithms }),
      clockTolerance,
      currentDate: new Date(this.#clock.now()),
    });
    return payload;
  }
}
