import type { Database } from '../../kernel/database/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { IdentityProvider, RemoteUser } from '../browser-logins/identity-provider.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';
import { samlProviderId } from '../provider-ids.ts';
import type { UserMapper } from '../user-mapper.ts';
import { type SamlIdentityProviders, type SamlMetadataDeps, SamlMetadataSource } from './metadata-source.ts';
import { decoded, inResponseTo, invalid, ResponseCheck } from './response-check.ts';
import { issuerOf } from './response-issuer.ts';
import { type SamlOptions, SamlUserMapping } from './saml-user.ts';
import { ServiceProvider } from './service-provider.ts';
import { checkMetadataFiles, readServiceProvider } from './service-provider-config.ts';
import { UsedAssertions } from './used-assertions.ts';

export interface SamlDeps extends SamlMetadataDeps {
  readonly database: Database;
  /** Public URL of this server, ending in a slash. */
  readonly baseUrl: string;
  /** Modules that map users to accounts, by the id of the provider. */
  readonly mappers?: ReadonlyMap<string, UserMapper> | undefined;
}

/** Identity providers of SAML 2.0, which this server knows by their metadata. */
export class SamlProvider implements IdentityProvider {
  readonly id = samlProviderId;
  readonly name: string;
  readonly icon: string | undefined;
  readonly brand: string | undefined;
  readonly allowsRegistration = true;
  readonly respondsByPost = true;
  readonly lifetime: number;
  readonly allowsUnsolicited: boolean;
  readonly #deps: SamlDeps;
  readonly #service: ServiceProvider;
  readonly #responses: ResponseCheck;
  readonly #mapping: SamlUserMapping;
  readonly #metadata: SamlMetadataSource;

  constructor(deps: SamlDeps, options: SamlOptions, sp: JsonObject) {
    this.name = options.idp_name ?? 'SAML';
    this.icon = options.idp_icon ?? undefined;
    this.brand = options.idp_brand ?? undefined;
    this.lifetime = options.saml_session_lifetime;
    const config = readServiceProvider(sp);
    checkMetadataFiles(config);
    this.allowsUnsolicited = config.allowUnsolicited;
    this.#deps = deps;
    this.#service = new ServiceProvider(config, deps.baseUrl);
    this.#responses = new ResponseCheck(this.#service, deps.clock, new UsedAssertions(deps));
    this.#mapping = new SamlUserMapping(options, deps.mappers?.get(this.id));
    this.#metadata = new SamlMetadataSource(deps, config, options.idp_entityid);
  }

  /** Begins a login. The query parameter `saml_idp` chooses one of several identity providers by its entity id. */
  async begin(
    state: string,
    parameters: URLSearchParams,
    isForced: boolean,
  ): Promise<{ url: string; secrets: JsonObject }> {
    const providers = await this.#providers();
    const wanted = parameters.get('saml_idp');
    const chosen = wanted === null ? providers.list[0] : providerNamed(providers, wanted);
    if (chosen === undefined) throw unknownProvider();
    if (wanted === null && providers.areSeveral) {
      return { url: `/_synapse/client/saml2/pick_idp?session=${state}`, secrets: {} };
    }
    const requestId = `_${state}`;
    const requests = await this.#service.requests(chosen, { requestId, isForced });
    const url = await requests.getAuthorizeUrlAsync(state, undefined, {});
    const forcedAt = isForced ? this.#deps.clock.now() : null;
    return { url, secrets: { requestId, entityId: chosen.entityId, forcedAt } };
  }

  /**
   * Returns the user of a response to a request of this server.
   * @param response in base64
   * @throws LoginFailure
   */
  async authenticate(response: string, { requestId, entityId, forcedAt }: JsonObject): Promise<RemoteUser> {
    const providers = await this.#providers();
    const provider = providerNamed(providers, entityId);
    if (provider === undefined) throw unknownProvider();
    const profile = await this.#responses.verify(provider, response);
    if (inResponseTo(profile) !== requestId) throw invalid(new Error('the response is to another request'));
    if (typeof forcedAt === 'number') this.#responses.checkForced(profile, forcedAt);
    return this.#mapping.user(profile, providers.areSeveral);
  }

  /**
   * Returns the user of an unsolicited response: the login begins at an identity provider, without a request of this
   * server. The issuer of the response says at which one.
   * @throws LoginFailure
   */
  async authenticateUnsolicited(response: string): Promise<RemoteUser> {
    const providers = await this.#providers();
    const provider = providerNamed(providers, issuerIn(response));
    if (provider === undefined) throw unknownProvider();
    const profile = await this.#responses.verify(provider, response);
    if (inResponseTo(profile) !== undefined) throw invalid(new Error('the response is to a request'));
    return this.#mapping.user(profile, providers.areSeveral);
  }

  /** Returns the metadata of this server, for identity providers. */
  metadata(): Promise<string> {
    return this.#service.metadata();
  }

  /** Returns the identity providers among which users choose. */
  async choices(): Promise<readonly { readonly entityId: string; readonly name: string }[]> {
    return (await this.#providers()).list;
  }

  async #providers(): Promise<SamlIdentityProviders> {
    try {
      return await this.#metadata.providers();
    } catch (cause) {
      const message = `The identity provider ${this.name} cannot be used at the moment`;
      throw new LoginFailure('provider_unavailable', message, { status: 502, cause });
    }
  }
}

const providerNamed = ({ list }: SamlIdentityProviders, entityId: unknown) =>
  list.find((known) => known.entityId === entityId);

const unknownProvider = () => new LoginFailure('unknown_provider', 'There is no such identity provider');

/** Returns the issuer that a response claims. @throws LoginFailure for invalid XML */
function issuerIn(response: string): string | undefined {
  try {
    return issuerOf(decoded(response));
  } catch (cause) {
    throw invalid(cause);
  }
}
