import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { OidcProviderConfig } from '../options/oidc.ts';
import type { ProviderRequests } from './provider-requests.ts';

/** The endpoints and capabilities of a provider. */
export interface ProviderMetadata {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly userinfo_endpoint?: string;
  readonly jwks_uri?: string;
  /** Signature algorithms of id tokens. */
  readonly id_token_signing_alg_values_supported: readonly string[];
  readonly code_challenge_methods_supported: readonly string[];
  /** Whether authorization responses name the issuer. Source: RFC 9207. */
  readonly authorization_response_iss_parameter_supported?: boolean;
}

/** Milliseconds that the discovery document is cached. */
const maxAge = 3_600_000;

/** Endpoints that the configuration may name in place of the discovery document. */
export const endpoints = [
  'authorization_endpoint',
  'token_endpoint',
  'userinfo_endpoint',
  'jwks_uri',
] as const;

/**
 * Reads and caches the metadata of a provider: its discovery document, and the endpoints of the configuration, which
 * take precedence.
 */
export class MetadataSource {
  readonly #config: OidcProviderConfig;
  readonly #requests: ProviderRequests;
  readonly #clock: Clock;
  readonly #reading = new LoadOnce<'metadata', ProviderMetadata>();
  #cached: { readonly metadata: ProviderMetadata; readonly readAt: number } | undefined;

  constructor(config: OidcProviderConfig, requests: ProviderRequests, clock: Clock) {
    this.#config = config;
    this.#requests = requests;
    this.#clock = clock;
  }

  /** @throws Error when the provider cannot be reached, or its metadata violates the specification */
  async read(): Promise<ProviderMetadata> {
    const now = this.#clock.now();
    if (this.#cached !== undefined && now - this.#cached.readAt < maxAge) return this.#cached.metadata;
    return this.#reading.run('metadata', async () => {
      const metadata = await this.#load();
      this.#cached = { metadata, readAt: this.#clock.now() };
      return metadata;
    });
  }

  async #load(): Promise<ProviderMetadata> {
    const config = this.#config;
    const { issuer, skip_verification: isLenient } = config;
    const document: JsonObject = config.discover
      ? await this.#requests.discovery(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
      : {};
    if (!isLenient && config.discover && document['issuer'] !== issuer) {
      throw new Error(`the issuer of the discovery document is not ${issuer}`);
    }
    const urls = Object.fromEntries(
      endpoints.flatMap((name) => {
        const url = config[name] ?? document[name];
        return typeof url === 'string' ? [[name, url]] : [];
      }),
    ) as Partial<Record<(typeof endpoints)[number], string>>;
    const { authorization_endpoint, token_endpoint } = urls;
    if (authorization_endpoint === undefined || token_endpoint === undefined) {
      throw new Error('the provider names no authorization endpoint or no token endpoint');
    }
    if (!isLenient) {
      for (const url of [issuer, ...Object.values(urls)]) {
        if (!url.startsWith('https://'))
          throw new Error(`${url} is not an https:// URL (skip_verification allows it)`);
      }
    }
    return {
      ...urls,
      issuer,
      authorization_endpoint,
      token_endpoint,
      id_token_signing_alg_values_supported:
        config.id_token_signing_alg_values_supported ??
        firstIfNotEmpty(texts(document['id_token_signing_alg_values_supported']), ['RS256']),
      code_challenge_methods_supported: texts(document['code_challenge_methods_supported']),
      ...(document['authorization_response_iss_parameter_supported'] === true && {
        authorization_response_iss_parameter_supported: true,
      }),
    };
  }
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : [];

const firstIfNotEmpty = (list: string[], other: string[]) => (list.length > 0 ? list : other);
