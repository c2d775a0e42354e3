import type { JSONWebKeySet, JWTPayload, JWTVerifyOptions } from 'jose';
import type { Clock } from '../../kernel/clock.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';
import { clockTolerance } from './clock-tolerance.ts';
import type { ProviderRequests } from './provider-requests.ts';

/** Rate limit of fetching the keys again because a token does not match them. */
const refetchRate = { per_second: 0.1, burst_count: 5 };

/** Failures after which the keys of the provider may have changed. */
const rotationCodes = new Set(['ERR_JWKS_NO_MATCHING_KEY', 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED']);

/** Verifies tokens with the keys of a provider, which are cached until a token does not match them. */
export class ProviderKeys {
  readonly #requests: ProviderRequests;
  readonly #clock: Clock;
  readonly #refetches: RateLimiter;
  #keys: { readonly uri: string; readonly set: JSONWebKeySet } | undefined;

  constructor(requests: ProviderRequests, clock: Clock) {
    this.#requests = requests;
    this.#clock = clock;
    this.#refetches = new RateLimiter(refetchRate, clock);
  }

  /**
   * Returns the claims of a signed token. Symmetric algorithms and `none` are refused.
   * @throws Error
   */
  async verify(token: string, uri: string, options: JWTVerifyOptions): Promise<JWTPayload> {
    const isCached = this.#keys?.uri === uri;
    try {
      return await this.#verify(token, uri, options);
    } catch (error) {
      const { code } = error as { code?: string };
      if (!isCached || code === undefined || !rotationCodes.has(code)) throw error;
      this.#refetches.take(uri);
      this.#keys = undefined;
      return this.#verify(token, uri, options);
    }
  }

  async #verify(token: string, uri: string, options: JWTVerifyOptions): Promise<JWTPayload> {
    const { createLocalJWKSet, jwtVerify } = await import('jose');
    if (this.#keys?.uri !== uri) {
      this.#keys = { uri, set: (await this.#requests.json(uri)) as unknown as JSONWebKeySet };
    }
    const algorithms = options.algorithms?.filter((algorithm) => !/^(HS|none)/i.test(algorithm));
    const { payload } = await jwtVerify(token, createLocalJWKSet(this.#keys.set), {
      ...options,
      ...(algorithms && { algorithms }),
      clockTolerance,
      currentDate: new Date(this.#clock.now()),
    });
    return payload;
  }
}
