import type { Profile } from '@node-saml/node-saml';
import type { Clock } from '../../kernel/clock.ts';
import { LoginFailure, notAuthenticatedAgain } from '../browser-logins/login-failure.ts';
import { childrenOf, parseXml } from '../xml.ts';
import type { SamlIdentityProvider } from './saml-metadata.ts';
import type { ServiceProvider } from './service-provider.ts';
import type { UsableAssertion, UsedAssertions } from './used-assertions.ts';

/**
 * Milliseconds that are added to `accepted_time_diff` when the time of an authentication is compared, because the
 * clocks of the identity provider and of this server may differ.
 */
const clockTolerance = 60_000;

const success = 'urn:oasis:names:tc:SAML:2.0:status:Success';

/** Verifies responses of identity providers. Source: SAML 2.0 profiles, 4.1.4 */
export class ResponseCheck {
  readonly #service: ServiceProvider;
  readonly #clock: Clock;
  readonly #usedAssertions: Pick<UsedAssertions, 'use'>;

  constructor(service: ServiceProvider, clock: Clock, used: Pick<UsedAssertions, 'use'>) {
    this.#service = service;
    this.#clock = clock;
    this.#usedAssertions = used;
  }

  /**
   * Returns the profile of the user of a valid response. Each assertion is accepted once.
   * @param response in base64
   * @throws LoginFailure
   */
  async verify(provider: SamlIdentityProvider, response: string): Promise<Profile> {
    const { profile, assertion } = await this.#check(provider, response);
    if (!(await this.#usedAssertions.use(assertion)))
      throw invalid(new Error('the assertion was used before'));
    return profile;
  }

  /**
   * Checks, for a login that requires it, that the identity provider has authenticated the user after the start of the
   * login.
   * @throws LoginFailure
   */
  checkForced(profile: Profile, forcedAt: number): void {
    const time = Date.parse(assertionOf(profile)?.AuthnStatement?.[0]?.$?.['AuthnInstant'] ?? '');
    const tolerance = this.#service.config.acceptedTimeDiff * 1000 + clockTolerance;
    if (!(time + tolerance >= forcedAt)) throw notAuthenticatedAgain();
  }

  async #check(
    provider: SamlIdentityProvider,
    response: string,
  ): Promise<{ readonly profile: Profile; readonly assertion: UsableAssertion }> {
    try {
      const hasOwnSignature = this.#checkEnvelope(provider, decoded(response));
      const saml = await this.#service.responses(provider, hasOwnSignature);
      const { profile } = await saml.validatePostResponseAsync({ SAMLResponse: response });
      if (profile === null) throw new Error('the response has no assertion');
      if (profile.issuer !== provider.entityId) throw new Error('the assertion has another issuer');
      if (confirmationOf(profile)?.['Recipient'] !== this.#service.responseUrl) {
        throw new Error('the assertion is for another recipient');
      }
      const expiresAt = this.#expiryOf(profile);
      if (expiresAt <= this.#clock.now()) throw new Error('the assertion has expired');
      const id = assertionOf(profile)?.$?.['ID'];
      if (id === undefined || id === '') throw new Error('the assertion has no id');
      return { profile, assertion: { issuer: provider.entityId, id, expiresAt } };
    } catch (cause) {
      throw cause instanceof LoginFailure ? cause : invalid(cause);
    }
  }

  /**
   * Refuses responses that report no success, or name another destination or issuer. In most responses no signature
   * covers the envelope, so its values can only make the response invalid.
   * @returns whether the response itself has a signature
   * @throws Error
   */
  #checkEnvelope(provider: SamlIdentityProvider, xml: string): boolean {
    const response = parseXml(xml);
    const { Destination: destination = '' } = response.attributes;
    if (destination !== '' && destination !== this.#service.responseUrl) {
      throw new Error('the response has another destination');
    }
    const issuer = childrenOf(response, 'Issuer')[0]?.text;
    if (issuer !== undefined && issuer !== provider.entityId) {
      throw new Error('the response has another issuer');
    }
    const [status] = childrenOf(response, 'Status').flatMap((one) => childrenOf(one, 'StatusCode'));
    const code = status?.attributes['Value'];
    if (code !== success) throw new Error(`the response has the status ${code}`);
    return childrenOf(response, 'Signature').length > 0;
  }

  /** Returns when an assertion expires, in milliseconds since the epoch. @throws Error when it names no valid time */
  #expiryOf(profile: Profile): number {
    const end = Date.parse(confirmationOf(profile)?.['NotOnOrAfter'] ?? '');
    if (Number.isNaN(end)) throw new Error('the assertion has no valid NotOnOrAfter');
    return end + this.#service.config.acceptedTimeDiff * 1000;
  }
}

/** Maximum number of tags in a response: XML is parsed without a pause. */
const maxTags = 10_000;

/** Maximum number of attributes in a response. */
const maxAttributes = 20_000;

/** Decodes a response. @param response in base64 @throws Error when its XML would take long to parse */
export function decoded(response: string): string {
  const xml = Buffer.from(response, 'base64').toString('utf8');
  if (countOf(xml, '<') > maxTags || countOf(xml, '=') > maxAttributes)
    throw new Error('the response has too many elements or attributes');
  return xml;
}

const countOf = (text: string, part: string): number => text.split(part).length - 1;

export const invalid = (cause: unknown): LoginFailure =>
  new LoginFailure('invalid_response', 'The identity provider sent an invalid response', { cause });

/** Returns the id of the request that a verified assertion responds to. */
export const inResponseTo = (profile: Profile): string | undefined =>
  confirmationOf(profile)?.['InResponseTo'];

/** Returns the attributes of the subject confirmation. The verified signature covers them. */
function confirmationOf(profile: Profile): Readonly<Record<string, string>> | undefined {
  return assertionOf(profile)?.Subject?.[0]?.SubjectConfirmation?.[0]?.SubjectConfirmationData?.[0]?.$;
}

interface Assertion {
  readonly $?: Readonly<Record<string, string>>;
  readonly Subject?: readonly Confirmations[];
  readonly AuthnStatement?: readonly { readonly $?: Readonly<Record<string, string>> }[];
}

/** Returns the assertion whose signature was verified. */
const assertionOf = (profile: Profile): Assertion | undefined =>
  (profile.getAssertion?.() as { readonly Assertion?: Assertion } | undefined)?.Assertion;

interface Confirmations {
  readonly SubjectConfirmation?: readonly {
    readonly SubjectConfirmationData?: readonly { readonly $?: Readonly<Record<string, string>> }[];
  }[];
}
