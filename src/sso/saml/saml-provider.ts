import { readFile } from 'node:fs/promises';
import type { Profile, SAML, SamlConfig } from '@node-saml/node-saml';
import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { OutboundHttp } from '../../kernel/outbound/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { meetsRequirements } from '../attribute-requirements.ts';
import type { IdentityProvider, RemoteUser } from '../browser-logins/identity-provider.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';
import type { SsoConfig } from '../config.ts';
import { dotReplacedName, hexEncodedName } from '../user-names.ts';
import { readMetadata, type SamlIdentityProvider } from './saml-metadata.ts';
import { readServiceProvider, type ServiceProviderConfig } from './service-provider-config.ts';
import { UsedAssertions } from './used-assertions.ts';

type SamlOptions = NonNullable<SsoConfig['saml2_config']>;

export interface SamlDeps {
  readonly http: Pick<OutboundHttp, 'fetch'>;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  /** Public URL of this server, ending in a slash. */
  readonly baseUrl: string;
}

/** Milliseconds until metadata must have arrived, maximum bytes of it, and milliseconds until it is read again. */
const [timeout, maxBody, maxAge] = [10_000, 16 * 1024 * 1024, 3_600_000];

/** Identity providers of SAML 2.0, which this server knows by their metadata. */
export class SamlProvider implements IdentityProvider {
  readonly id = 'saml';
  readonly name: string;
  readonly icon: string | undefined;
  readonly brand: string | undefined;
  readonly allowsRegistration = true;
  readonly respondsByPost = true;
  readonly lifetime: number;
  readonly #deps: SamlDeps;
  readonly #options: SamlOptions;
  readonly #sp: ServiceProviderConfig;
  readonly #used: UsedAssertions;
  #known: { readonly providers: readonly SamlIdentityProvider[]; readonly readAt: number } | undefined;

  constructor(deps: SamlDeps, options: SamlOptions, sp: JsonObject) {
    this.name = options.idp_name ?? 'SAML';
    this.icon = options.idp_icon ?? undefined;
    this.brand = options.idp_brand ?? undefined;
    this.lifetime = options.saml_session_lifetime;
    this.#deps = deps;
    this.#options = options;
    this.#sp = readServiceProvider(sp);
    this.#used = new UsedAssertions(deps);
  }

  get allowsUnsolicited(): boolean {
    return this.#sp.allowUnsolicited;
  }

  /**
   * Begins a login. The parameter `saml_idp` is the entity id of an identity provider, when the metadata
   * contains several.
   */
  async begin(state: string, parameters: URLSearchParams): Promise<{ url: string; secrets: JsonObject }> {
    const providers = await this.#reach(() => this.#providers());
    const wanted = parameters.get('saml_idp') ?? this.#options.idp_entityid;
    const chosen = wanted === null ? providers[0] : providers.find(({ entityId }) => entityId === wanted);
    if (chosen === undefined)
      throw new LoginFailure('unknown_provider', 'There is no such identity provider');
    if (wanted === null && providers.length > 1) {
      return { url: `/_synapse/client/saml2/pick_idp?session=${state}`, secrets: {} };
    }
    const requestId = `_${state}`;
    const saml = await this.#saml(chosen, requestId);
    const url = await saml.getAuthorizeUrlAsync(state, undefined, {});
    return { url, secrets: { requestId, entityId: chosen.entityId } };
  }

  /**
   * Returns the user of a response to a request of this server.
   * @param response in base64
   * @throws LoginFailure
   */
  async authenticate(response: string, { requestId, entityId }: JsonObject): Promise<RemoteUser> {
    const providers = await this.#reach(() => this.#providers());
    const provider = providers.find((known) => known.entityId === entityId);
    if (provider === undefined)
      throw new LoginFailure('unknown_provider', 'There is no such identity provider');
    const profile = await this.#verify(provider, response);
    if (inResponseTo(profile) !== requestId) throw invalid(new Error('the response is to another request'));
    return this.#user(profile);
  }

  /** Returns the user of a response that begins a login at the identity provider. @throws LoginFailure */
  async authenticateUnsolicited(response: string): Promise<RemoteUser> {
    const providers = await this.#reach(() => this.#providers());
    let failure: unknown;
    for (const provider of providers) {
      const profile = await this.#verify(provider, response).catch((error: unknown) => {
        failure = error;
        return undefined;
      });
      if (profile === undefined) continue;
      if (inResponseTo(profile) !== undefined) throw invalid(new Error('the response is to a request'));
      return this.#user(profile);
    }
    throw failure instanceof LoginFailure ? failure : invalid(failure);
  }

  /** Returns the metadata of this server, for identity providers. */
  async metadata(): Promise<string> {
    const { generateServiceProviderMetadata } = await import('@node-saml/node-saml');
    const { privateKey, certificate } = this.#sp;
    return generateServiceProviderMetadata({
      issuer: this.#entityId,
      callbackUrl: this.#responseUrl,
      wantAssertionsSigned: true,
      ...(privateKey !== undefined && {
        privateKey,
        decryptionPvk: privateKey,
        signatureAlgorithm: 'sha256',
      }),
      ...(certificate !== undefined && { decryptionCert: certificate, publicCerts: certificate }),
    });
  }

  get #entityId(): string {
    return this.#sp.entityId ?? `${this.#deps.baseUrl}_synapse/client/saml2/metadata.xml`;
  }

  get #responseUrl(): string {
    return `${this.#deps.baseUrl}_synapse/client/saml2/authn_response`;
  }

  /** Returns the identity providers among which users choose. */
  async choices(): Promise<readonly { readonly entityId: string; readonly name: string }[]> {
    return this.#reach(() => this.#providers());
  }

  async #saml(provider: SamlIdentityProvider, requestId?: string): Promise<SAML> {
    const { SAML, ValidateInResponseTo } = await import('@node-saml/node-saml');
    const { acceptedTimeDiff, privateKey } = this.#sp;
    const settings: SamlConfig = {
      issuer: this.#entityId,
      audience: this.#entityId,
      callbackUrl: this.#responseUrl,
      entryPoint: provider.singleSignOn,
      idpIssuer: provider.entityId,
      idpCert: [...provider.certificates],
      wantAssertionsSigned: true,
      // The signature of the assertion suffices, because many identity providers do not sign the response as
      // well.
      wantAuthnResponseSigned: false,
      acceptedClockSkewMs: acceptedTimeDiff * 1000,
      identifierFormat: null,
      disableRequestedAuthnContext: true,
      // `authenticate` compares InResponseTo with the login session instead, after the signature was
      // verified.
      validateInResponseTo: ValidateInResponseTo.never,
      ...(requestId !== undefined && { generateUniqueId: () => requestId }),
      ...(privateKey !== undefined && {
        privateKey,
        decryptionPvk: privateKey,
        signatureAlgorithm: 'sha256',
      }),
    };
    return new SAML(settings);
  }

  async #verify(provider: SamlIdentityProvider, response: string): Promise<Profile> {
    try {
      const xml = Buffer.from(response, 'base64').toString('utf8');
      if (/<!(DOCTYPE|ENTITY)/i.test(xml)) throw new Error('XML with a document type is refused');
      const saml = await this.#saml(provider);
      const { profile } = await saml.validatePostResponseAsync({ SAMLResponse: response });
      if (profile === null) throw new Error('the response has no assertion');
      if (profile.issuer !== provider.entityId) throw new Error('the assertion is of another issuer');
      checkRecipient(profile, this.#responseUrl, this.#deps.clock.now(), this.#sp.acceptedTimeDiff);
      this.#used.use(provider.entityId, assertionOf(profile)?.$?.['ID']);
      return profile;
    } catch (cause) {
      throw cause instanceof LoginFailure ? cause : invalid(cause);
    }
  }

  #user(profile: Profile): RemoteUser {
    const attributes = attributesOf(profile);
    const { attribute_requirements, grandfathered_mxid_source_attribute: oldSource } = this.#options;
    if (!meetsRequirements(attributes, attribute_requirements)) {
      throw new LoginFailure('unauthorised', 'You are not allowed to log in here', { status: 403 });
    }
    const { mxid_source_attribute: source, mxid_mapping: mapping } =
      this.#options.user_mapping_provider.config;
    const [name] = attributes[source] ?? [];
    const [externalId] = attributes['uid'] ?? [];
    if (externalId === undefined || name === undefined) {
      const missing = externalId === undefined ? 'uid' : source;
      throw new LoginFailure('mapping_error', `The identity provider sent no attribute ${missing}`);
    }
    const localpart = mapping === 'dotreplace' ? dotReplacedName(name) : hexEncodedName(name);
    const [oldName] = oldSource === '' ? [] : (attributes[oldSource] ?? []);
    return {
      externalId,
      localpart,
      existingLocalpart: oldName === undefined ? undefined : hexEncodedName(oldName),
      displayName: attributes['displayName']?.[0],
      emails: attributes['email'] ?? [],
    };
  }

  async #providers(): Promise<readonly SamlIdentityProvider[]> {
    const now = this.#deps.clock.now();
    if (this.#known !== undefined && now - this.#known.readAt < maxAge) return this.#known.providers;
    const texts = await Promise.all([
      ...this.#sp.local.map((path) => readFile(path, 'utf8')),
      ...this.#sp.remote.map((url) => this.#fetch(url)),
    ]);
    const providers = texts.flatMap(readMetadata);
    if (providers.length === 0)
      throw new Error('the metadata contains no identity provider that can be used');
    this.#known = { providers, readAt: now };
    return providers;
  }

  async #fetch(url: string): Promise<string> {
    const { status, body } = await this.#deps.http.fetch(new URL(url), { timeout, maxBody, redirects: 3 });
    if (status !== 200) throw new Error(`${url} responded ${status}`);
    return body.toString('utf8');
  }

  async #reach<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      const message = `The identity provider ${this.name} cannot be used at the moment`;
      throw new LoginFailure('provider_unavailable', message, { status: 502, cause });
    }
  }
}

const invalid = (cause: unknown) =>
  new LoginFailure('invalid_response', 'The identity provider sent an invalid response', { cause });

/** Returns the id of the request that a verified assertion responds to. */
const inResponseTo = (profile: Profile): string | undefined => confirmationOf(profile)?.['InResponseTo'];

/** Returns the attributes of the confirmation of the subject, which the signature covers. */
function confirmationOf(profile: Profile): Readonly<Record<string, string>> | undefined {
  return assertionOf(profile)?.Subject?.[0]?.SubjectConfirmation?.[0]?.SubjectConfirmationData?.[0]?.$;
}

interface Assertion {
  readonly $?: Readonly<Record<string, string>>;
  readonly Subject?: readonly Confirmations[];
}

/** Returns the assertion whose signature was verified. */
const assertionOf = (profile: Profile): Assertion | undefined =>
  (profile.getAssertion?.() as { readonly Assertion?: Assertion } | undefined)?.Assertion;

interface Confirmations {
  readonly SubjectConfirmation?: readonly {
    readonly SubjectConfirmationData?: readonly { readonly $?: Readonly<Record<string, string>> }[];
  }[];
}

/** @throws Error when the assertion is for another service, or too old. Source: SAML 2.0 profiles, 4.1.4.2 */
function checkRecipient(profile: Profile, url: string, now: number, tolerance: number): void {
  const { Recipient: recipient, NotOnOrAfter: end } = confirmationOf(profile) ?? {};
  if (recipient !== url) throw new Error('the assertion is for another recipient');
  if (end === undefined || Date.parse(end) + tolerance * 1000 <= now)
    throw new Error('the assertion is too old');
}

/** Returns the attributes of an assertion by name, with usual names in place of known object identifiers. */
function attributesOf(profile: Profile): Record<string, string[]> {
  const given = profile['attributes'] as Readonly<Record<string, unknown>> | undefined;
  const entries = Object.entries(given ?? {}).map(([name, value]) => {
    const values = Array.isArray(value) ? value : [value];
    return [friendlyNames[name] ?? name, values.map(String)] as const;
  });
  return Object.fromEntries(entries);
}

/** Names of usual attributes by their object identifiers. Source: RFC 4519 and eduPerson. */
const friendlyNames: Readonly<Record<string, string>> = {
  'urn:oid:0.9.2342.19200300.100.1.1': 'uid',
  'urn:oid:0.9.2342.19200300.100.1.3': 'email',
  'urn:oid:2.16.840.1.113730.3.1.241': 'displayName',
  'urn:oid:2.5.4.42': 'givenName',
  'urn:oid:2.5.4.4': 'surname',
  'urn:oid:1.3.6.1.4.1.5923.1.1.1.6': 'eduPersonPrincipalName',
  mail: 'email',
};
