import type { JsonObject } from '../../protocol/index.ts';
import type { Denial } from './decision.ts';
import type { ModuleApi } from './module.ts';

/**
 * The account to which a module maps a user of an identity provider. All fields apply to a new account; with
 * `sso.update_profile_information`, `displayName` and `picture` also update an existing account at each login.
 */
export interface MappedUser {
  /**
   * The part of the user id before the colon, of the characters `a-z 0-9 . _ = - / +`; not empty. When an account with
   * this user id exists, a number is appended, or with `allow_existing_users` (OpenID Connect) the user logs in to
   * that account. When `localpart` is absent, the user chooses a name.
   */
  readonly localpart?: string;
  /** Whether a page lets the user confirm or change `localpart`. */
  readonly confirmsLocalpart?: boolean;
  readonly displayName?: string;
  /** Mail addresses of the user; the module must leave out unverified addresses. At most 20. */
  readonly emails?: readonly string[];
  /** URL of the picture. */
  readonly picture?: string;
  /** Further fields for the response to the login of the client. At most 4 KiB of JSON. */
  readonly attributes?: JsonObject;
}

/** A user whom a provider of OpenID Connect has authenticated. */
export interface OidcUser {
  /** The option `idp_id` of the provider. */
  readonly provider: string;
  /** The claims of the id token, or of the userinfo endpoint. */
  readonly claims: JsonObject;
  /** The access token for the APIs of the provider. */
  readonly accessToken: string;
}

/** A user whom an identity provider of SAML has authenticated. */
export interface SamlUser {
  /** The entity id of the identity provider. */
  readonly issuer: string;
  /** The name id of the assertion, which may differ at each login. */
  readonly nameId: string | undefined;
  /**
   * The values of each attribute by its name. Common attributes that the assertion names by an object identifier
   * (`urn:oid:…`) are named `uid`, `email`, `displayName` and so on.
   */
  readonly attributes: Readonly<Record<string, readonly string[]>>;
}

/** Maps users of OpenID Connect. When a method fails, the login fails. */
export interface OidcUserMapper {
  /**
   * Returns the id by which a user of the provider is recognised at each login: 1 to 500 characters that never change
   * and that the provider assigns to no other user. It is also called with the claims of logout tokens, which have few
   * claims besides `sub`. Without this method the id is the value of `subject_template`, by default the claim `sub`.
   */
  idOf?(claims: JsonObject): string | Promise<string>;
  /** Maps a user at each login, after `attribute_requirements` are met. A denial refuses the login with its text. */
  map(user: OidcUser): MappedUser | Denial | Promise<MappedUser | Denial>;
}

/** Maps users of SAML. When a method fails, the login fails. */
export interface SamlUserMapper {
  /** As `idOf` of `OidcUserMapper`. Without this method the id is the attribute `uid`. */
  idOf?(user: SamlUser): string | Promise<string>;
  /** Maps a user at each login, after `attribute_requirements` are met. A denial refuses the login with its text. */
  map(user: SamlUser): MappedUser | Denial | Promise<MappedUser | Denial>;
}

/**
 * The default export of a module that `oidc_providers[].user_mapping_provider.module` names.
 * @param config the value of `user_mapping_provider.config`, with defaults for absent options of the built-in mapping
 */
export type OidcUserMapping<Config = JsonObject> = (
  config: Config,
  api: ModuleApi,
) => OidcUserMapper | Promise<OidcUserMapper>;

/**
 * The default export of a module that `saml2_config.user_mapping_provider.module` names.
 * @param config the value of `user_mapping_provider.config`, with defaults for absent options of the built-in mapping
 */
export type SamlUserMapping<Config = JsonObject> = (
  config: Config,
  api: ModuleApi,
) => SamlUserMapper | Promise<SamlUserMapper>;
