import type { JsonObject } from '../../protocol/index.ts';

/** How `GET /login` and pages describe a provider. */
export interface ProviderDescription {
  readonly id: string;
  readonly name: string;
  /** An `mxc://` URI. */
  readonly icon: string | undefined;
  readonly brand: string | undefined;
}

/** A provider that authenticates users in their browser. */
export interface IdentityProvider extends ProviderDescription {
  /** Whether a login creates an account for a user who has none. */
  readonly allowsRegistration: boolean;
  /**
   * Whether the provider sends the browser back with a form (POST). Browsers treat this as a request from another site.
   */
  readonly respondsByPost?: boolean;
  /** The user must finish the login within this many milliseconds; by default 15 minutes. */
  readonly lifetime?: number;
  /**
   * Begins a login.
   * @param state identifies the login; the provider returns it
   * @param parameters query parameters of the request that began the login
   * @param isForced whether the provider must authenticate the user again, although the user is signed in there
   * @returns the URL that the browser is redirected to, and the secrets that the provider needs later to authenticate
   * the user
   * @throws LoginFailure
   */
  begin(
    state: string,
    parameters: URLSearchParams,
    isForced: boolean,
  ): Promise<{ url: string; secrets: JsonObject }>;
}

/** A user whom a provider has authenticated. */
export interface RemoteUser {
  /** The id of the user at the provider. */
  readonly externalId: string;
  /**
   * The SAML identity provider (IdP) that has authenticated the user. Only the provider `saml` sets it, because its
   * metadata may list several IdPs.
   */
  readonly issuer?: {
    readonly entityId: string;
    /** Whether the metadata lists several IdPs. Then `externalId` contains the entity id. */
    readonly isOneOfSeveral: boolean;
    /**
     * The other form of `externalId`: without the entity id if `externalId` contains it, else with it. An account may be
     * stored under this form, because the metadata may have listed several IdPs at one time and one at another.
     */
    readonly otherExternalId: string;
  };
  /** Id of the session at the provider. */
  readonly sessionId?: string | undefined;
  /** Local part for the account of a new user, without characters that user ids cannot contain. */
  readonly localpart?: string | undefined;
  /** Whether a page asks the user to confirm `localpart`, and lets the user choose another one. */
  readonly confirmsLocalpart?: boolean;
  /** Local part of an existing account that the user may log in to, although it is not linked to the provider. */
  readonly existingLocalpart?: string | undefined;
  readonly displayName?: string | undefined;
  /** Mail addresses that belong to the user. */
  readonly emails?: readonly string[];
  /** URL of the avatar. */
  readonly picture?: string | undefined;
  /** Further fields for the response to the `POST /login` of the client (`extra_attributes`). */
  readonly extraFields?: JsonObject;
}
