import type * as OpenidClient from 'openid-client';
import type { Clock } from '../../kernel/clock.ts';
import { isJsonObject, type JsonObject, parseJson } from '../../protocol/index.ts';
import type { IdentityProvider, RemoteUser } from '../browser-logins/identity-provider.ts';
import { LoginFailure, notAuthenticatedAgain } from '../browser-logins/login-failure.ts';
import type { OperatorRequests } from '../operator-requests.ts';
import type { OidcProviderConfig } from '../options/oidc.ts';
import { oidcProviderId } from '../provider-ids.ts';
import type { UserMapper } from '../user-mapper.ts';
import { clientAuthentication } from './client-secret.ts';
import { clockTolerance as tolerance } from './clock-tolerance.ts';
import { ProviderKeys } from './provider-keys.ts';
import { endpoints, MetadataSource, type ProviderMetadata } from './provider-metadata.ts';
import { ProviderRequests } from './provider-requests.ts';
import { UserMapping } from './user-mapping.ts';

export interface OidcDeps extends OperatorRequests {
  readonly clock: Clock;
  /** Public URL of this server, ending in a slash. */
  readonly baseUrl: string;
  /** Modules that map users to accounts, by the id of the provider. */
  readonly mappers?: ReadonlyMap<string, UserMapper> | undefined;
}

/** A provider of OpenID Connect, or of plain OAuth 2.0 with a userinfo endpoint. */
export class OidcProvider implements IdentityProvider {
  readonly id: string;
  readonly name: string;
  readonly icon: string | undefined;
  readonly brand: string | undefined;
  readonly config: OidcProviderConfig;
  readonly mapping: UserMapping;
  readonly #clock: Clock;
  readonly #requests: ProviderRequests;
  readonly #metadata: MetadataSource;
  readonly #keys: ProviderKeys;
  readonly #redirectUri: string;

  constructor({ http, guardedHttp, clock, baseUrl, mappers }: OidcDeps, config: OidcProviderConfig) {
    this.id = oidcProviderId(config.idp_id);
    this.name = config.idp_name ?? 'OIDC';
    this.icon = config.idp_icon ?? undefined;
    this.brand = config.idp_brand ?? undefined;
    this.config = config;
    this.mapping = new UserMapping(config, mappers?.get(this.id));
    this.#clock = clock;
    const configured = endpoints.flatMap((name) => config[name] ?? []);
    this.#requests = new ProviderRequests({ http, guardedHttp }, new Set(configured));
    this.#metadata = new MetadataSource(config, this.#requests, clock);
    this.#keys = new ProviderKeys(this.#requests, clock);
    this.#redirectUri = config.redirect_uri ?? `${baseUrl}_synapse/client/oidc/callback`;
  }

  get allowsRegistration(): boolean {
    return this.config.enable_registration;
  }

  get respondsByPost(): boolean {
    return this.config.additional_authorization_parameters['response_mode'] === 'form_post';
  }

  async begin(
    state: string,
    parameters: URLSearchParams,
    isForced: boolean,
  ): Promise<{ url: string; secrets: JsonObject }> {
    const { config } = this;
    const client = await import('openid-client');
    const metadata = await this.#reach(() => this.#metadata.read());
    const nonce = this.#usesOpenid ? client.randomNonce() : null;
    const verifier = this.#usesPkce(metadata) ? client.randomPKCECodeVerifier() : null;
    const passedOn = config.passthrough_authorization_parameters.flatMap((name) => {
      const value = parameters.get(name);
      return value === null ? [] : [[name, value] as const];
    });
    const url = client.buildAuthorizationUrl(await this.#configuration(metadata), {
      ...config.additional_authorization_parameters,
      ...Object.fromEntries(passedOn),
      // These come last, so that configured and passed-on parameters cannot replace them.
      redirect_uri: this.#redirectUri,
      scope: (config.scopes ?? ['openid']).join(' '),
      state,
      ...(isForced && { prompt: 'login', ...(this.#usesOpenid && { max_age: '0' }) }),
      ...(nonce !== null && { nonce }),
      ...(verifier !== null && {
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }),
    });
    return { url: url.href, secrets: { nonce, verifier, forcedAt: isForced ? this.#clock.now() : null } };
  }

  /**
   * Returns the user whom an authorization response is about.
   * @param response the parameters that the provider has sent through the browser
   * @throws LoginFailure
   */
  async authenticate(response: URLSearchParams, secrets: JsonObject): Promise<RemoteUser> {
    const refusal = response.get('error');
    if (refusal !== null) {
      const reason = response.get('error_description') ?? 'The identity provider has refused the login';
      throw new LoginFailure(refusal.slice(0, 100), reason.slice(0, 500));
    }
    const metadata = await this.#reach(() => this.#metadata.read());
    const tokens = await this.#exchange(metadata, response, secrets);
    const idClaims = await this.#idClaims(metadata, tokens.id_token, secrets);
    checkForced(secrets['forcedAt'], idClaims?.['auth_time']);
    const claims = await this.#claims(metadata, tokens.access_token, idClaims);
    this.mapping.check(claims);
    const sid = idClaims?.['sid'];
    const user = await this.mapping.user(claims, tokens.access_token);
    return { ...user, sessionId: typeof sid === 'string' ? sid : undefined };
  }

  /** Returns the claims of a logout token. @throws Error */
  async verifyLogoutToken(token: string): Promise<JsonObject> {
    const { jwks_uri: uri, issuer, id_token_signing_alg_values_supported } = await this.#metadata.read();
    if (uri === undefined) throw new Error('the provider names no jwks_uri');
    const claims = await this.#keys.verify(token, uri, {
      issuer,
      audience: this.config.client_id,
      algorithms: [...id_token_signing_alg_values_supported],
      requiredClaims: ['iat'],
      maxTokenAge: '10 minutes',
    });
    return claims as JsonObject;
  }

  get #usesOpenid(): boolean {
    return (this.config.scopes ?? ['openid']).includes('openid');
  }

  #usesPkce({ code_challenge_methods_supported: methods }: ProviderMetadata): boolean {
    const { pkce_method: method } = this.config;
    return method === 'always' || (method === 'auto' && methods.includes('S256'));
  }

  async #configuration(metadata: ProviderMetadata): Promise<OpenidClient.Configuration> {
    const client = await import('openid-client');
    const { config } = this;
    const server = { ...metadata } as unknown as OpenidClient.ServerMetadata;
    const authentication = await clientAuthentication(config, this.#clock);
    const settings = { [client.clockTolerance]: tolerance } as Partial<OpenidClient.ClientMetadata>;
    const configuration = new client.Configuration(server, config.client_id, settings, authentication);
    configuration[client.customFetch] = this.#requests.fetch as OpenidClient.CustomFetch;
    if (config.skip_verification) client.allowInsecureRequests(configuration);
    return configuration;
  }

  /**
   * Exchanges the code for tokens. Refuses a response that names another issuer, so that a code is sent only to the
   * provider that has issued it (RFC 9207).
   */
  async #exchange(metadata: ProviderMetadata, response: URLSearchParams, { nonce, verifier }: JsonObject) {
    const client = await import('openid-client');
    const url = new URL(this.#redirectUri);
    url.search = response.toString();
    const state = response.get('state');
    try {
      return await client.authorizationCodeGrant(await this.#configuration(metadata), url, {
        ...(state !== null && { expectedState: state }),
        ...(typeof nonce === 'string' && { expectedNonce: nonce }),
        ...(typeof verifier === 'string' && { pkceCodeVerifier: verifier }),
      });
    } catch (cause) {
      throw new LoginFailure('invalid_response', 'The identity provider sent an invalid response', { cause });
    }
  }

  /** Verifies the id token and returns its claims; `undefined` without an id token, or without the scope `openid`. */
  async #idClaims(
    { issuer, jwks_uri: uri, id_token_signing_alg_values_supported }: ProviderMetadata,
    token: string | undefined,
    { nonce }: JsonObject,
  ): Promise<JsonObject | undefined> {
    if (token === undefined || !this.#usesOpenid) return undefined;
    try {
      if (uri === undefined) throw new Error('the provider names no jwks_uri');
      const claims = await this.#keys.verify(token, uri, {
        issuer,
        audience: this.config.client_id,
        algorithms: [...id_token_signing_alg_values_supported],
      });
      if (claims['nonce'] !== nonce) throw new Error('the id token has another nonce');
      return claims as JsonObject;
    } catch (cause) {
      throw new LoginFailure('invalid_token', 'The identity provider sent an invalid id token', { cause });
    }
  }

  /**
   * Returns the claims about the user: the claims of the id token, or the claims of the userinfo endpoint if the
   * configuration asks for them or there is no id token.
   */
  async #claims(
    { userinfo_endpoint: endpoint }: ProviderMetadata,
    accessToken: string,
    idClaims: JsonObject | undefined,
  ): Promise<JsonObject> {
    const usesUserinfo = this.config.user_profile_method === 'userinfo_endpoint' || !this.#usesOpenid;
    if (!usesUserinfo && idClaims !== undefined) return idClaims;
    if (endpoint === undefined) {
      throw new LoginFailure('fetch_error', 'The identity provider has no userinfo endpoint');
    }
    const claims = await this.#reach(() => this.#userinfo(endpoint, accessToken));
    if (idClaims !== undefined && claims['sub'] !== idClaims['sub']) {
      throw new LoginFailure(
        'invalid_response',
        'The identity provider sent claims that name another user or none',
      );
    }
    return claims;
  }

  async #userinfo(endpoint: string, accessToken: string): Promise<JsonObject> {
    const { status, contentType, text } = await this.#requests.text(endpoint, accessToken);
    if (status !== 200) throw new Error(`the userinfo endpoint responded ${status}`);
    if (contentType === 'application/jwt') {
      const { jwks_uri: uri, issuer, id_token_signing_alg_values_supported } = await this.#metadata.read();
      if (uri === undefined) throw new Error('the provider names no jwks_uri');
      const algorithms = [...id_token_signing_alg_values_supported];
      const claims = await this.#keys.verify(text, uri, { issuer, algorithms });
      // OpenID Connect Core, section 5.3.2: the response should name its audience, and some providers name none.
      const { aud } = claims;
      if (aud !== undefined && ![aud].flat().includes(this.config.client_id)) {
        throw new Error('the userinfo response is for another client');
      }
      return claims as JsonObject;
    }
    const claims = parseJson(text);
    if (!isJsonObject(claims)) throw new Error('the userinfo endpoint sent no JSON object');
    return claims;
  }

  /**
   * Runs requests to the provider, and turns their failures into a LoginFailure whose page says that the
   * provider cannot be used.
   */
  async #reach<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      if (cause instanceof LoginFailure) throw cause;
      const message = `The identity provider ${this.name} cannot be used at the moment`;
      throw new LoginFailure('provider_unavailable', message, { status: 502, cause });
    }
  }
}

/**
 * Checks, for a login that requires it, that the provider has authenticated the user after the start of the login.
 * Providers that do not support `max_age` send no time: whether they have asked the user again cannot be checked.
 * @param forcedAt start of the login in milliseconds since the epoch
 * @param authTime seconds since the epoch
 * @throws LoginFailure
 */
function checkForced(forcedAt: unknown, authTime: unknown): void {
  if (typeof forcedAt !== 'number' || typeof authTime !== 'number') return;
  if (authTime + tolerance < Math.floor(forcedAt / 1_000)) throw notAuthenticatedAgain();
}
