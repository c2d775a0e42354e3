import type { OutboundHttp } from '../../kernel/outbound/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { meetsRequirements } from '../attribute-requirements.ts';
import { boundedProfile } from '../bounded-profile.ts';
import type { IdentityProvider, RemoteUser } from '../browser-logins/identity-provider.ts';
import { LoginFailure } from '../browser-logins/login-failure.ts';
import type { SsoConfig } from '../config.ts';
import { hexEncodedName } from '../user-names.ts';
import { type CasUser, readTextResponse, readXmlResponse } from './service-response.ts';

type CasConfig = SsoConfig['cas_config'];

export interface CasDeps {
  readonly http: Pick<OutboundHttp, 'fetch'>;
  /** Public URL of this server, ending in a slash. */
  readonly baseUrl: string;
}

/** Milliseconds until a CAS server must have answered. */
const timeout = 10_000;

/** Maximum bytes of the answer of a CAS server. */
const maxBody = 256 * 1024;

/** Paths for the validation of tickets, by protocol version; version 2 is the default. */
const validationPaths: Readonly<Record<number, string>> = {
  1: 'validate',
  2: 'proxyValidate',
  3: 'p3/proxyValidate',
};

/** With this parameter the CAS server asks the user for the password. Source: CAS protocol, 2.1.1 and 2.4.1. */
const renew = { renew: 'true' };

/** A server of the Central Authentication Service. Source: CAS protocol 3.0 specification, which includes 1.0 and 2.0. */
export class CasProvider implements IdentityProvider {
  readonly id = 'cas';
  readonly name: string;
  readonly icon: string | undefined;
  readonly brand: string | undefined;
  readonly allowsRegistration: boolean;
  readonly #http: Pick<OutboundHttp, 'fetch'>;
  readonly #config: CasConfig;
  readonly #serverUrl: string;
  readonly #serviceUrl: string;

  constructor({ http, baseUrl }: CasDeps, config: CasConfig) {
    this.name = config.idp_name ?? 'CAS';
    this.icon = config.idp_icon ?? undefined;
    this.brand = config.idp_brand ?? undefined;
    this.allowsRegistration = config.enable_registration;
    this.#http = http;
    this.#config = config;
    this.#serverUrl = (config.server_url ?? '').replace(/\/*$/, '/');
    this.#serviceUrl = `${baseUrl}_matrix/client/r0/login/cas/ticket`;
  }

  async begin(
    state: string,
    _parameters: URLSearchParams,
    isForced: boolean,
  ): Promise<{ url: string; secrets: JsonObject }> {
    const query = new URLSearchParams({ service: this.#serviceFor(state), ...(isForced && renew) });
    return { url: `${this.#serverUrl}login?${query}`, secrets: { isForced } };
  }

  /**
   * Returns the user of a ticket. The CAS server issues a ticket for one login only. In a forced login it accepts a
   * ticket only if the user has entered a password for it.
   * @throws LoginFailure
   */
  async authenticate(ticket: string, state: string, { isForced }: JsonObject): Promise<RemoteUser> {
    const user = await this.#validate(ticket, this.#serviceFor(state), isForced === true);
    const { displayname_attribute, required_attributes } = this.#config;
    const requirements = Object.entries(required_attributes).map(([attribute, value]) => ({
      attribute,
      value,
      one_of: null,
    }));
    if (!meetsRequirements(user.attributes, requirements)) {
      throw new LoginFailure('unauthorised', 'You are not allowed to log in here', { status: 403 });
    }
    const name = displayname_attribute === null ? undefined : user.attributes[displayname_attribute]?.[0];
    const localpart = this.#localpart(user.name);
    // Names at the CAS server are user names of this server, so an existing account of the same name belongs
    // to the user.
    return { externalId: user.name, localpart, existingLocalpart: localpart, ...boundedProfile(name) };
  }

  /**
   * Returns the URL that the CAS server sends the browser to. It contains the state, so that a ticket is valid for one
   * login only.
   */
  #serviceFor(state: string): string {
    return `${this.#serviceUrl}?${new URLSearchParams({ session: state })}`;
  }

  async #validate(ticket: string, service: string, isForced: boolean): Promise<CasUser> {
    const version = this.#config.protocol_version ?? 2;
    const url = new URL(`${this.#serverUrl}${validationPaths[version]}`);
    url.searchParams.set('ticket', ticket);
    url.searchParams.set('service', service);
    if (isForced) url.searchParams.set('renew', renew.renew);
    let text: string;
    try {
      const { status, body } = await this.#http.fetch(url, { timeout, maxBody });
      if (status !== 200) throw new Error(`the CAS server responded ${status}`);
      text = body.toString('utf8');
    } catch (cause) {
      const message = `The identity provider ${this.name} cannot be used at the moment`;
      throw new LoginFailure('provider_unavailable', message, { status: 502, cause });
    }
    return version === 1 ? readTextResponse(text) : readXmlResponse(text);
  }

  #localpart(name: string): string {
    const localpart = hexEncodedName(name);
    const { allow_numeric_ids, numeric_ids_prefix } = this.#config;
    return allow_numeric_ids && /^\d+$/.test(localpart) ? `${numeric_ids_prefix}${localpart}` : localpart;
  }
}
