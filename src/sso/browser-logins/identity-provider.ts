import type { JsonObject } from '../../protocol/index.ts';

/** The appearance of a provider in `GET /login` and on pages. */
export interface ProviderFace {
  readonly id: string;
  readonly name: string;
  /** An `mxc://` URI. */
  readonly icon: string | undefined;
  readonly brand: string | undefined;
}

/** A provider that authenticates users in their browser. */
export interface IdentityProvider extends ProviderFace {
  /** Whether a login creates an account for a user who has none. */
  readonly allowsRegistration: boolean;
  /** Whether the provider sends the browser back with a form (POST), which is a request from another site. */
  readonly respondsByPost?: boolean;
  /** Milliseconds that the user may take; by default 15 minutes. */
  readonly lifetime?: number;
  /**
   * Begins a login.
   * @param state identifies the login; the provider returns it
   * @param parameters query parameters of the request that began the login
   * @returns the URL to which the browser is redirected, and what `authenticate` of the provider needs later
   * @throws LoginFailure
   */
  begin(state: string, parameters: URLSearchParams): Promise<{ url: string; secrets: JsonObject }>;
}

/** A user whom a provider has authenticated. */
export interface RemoteUser {
  readonly externalId: string;
  /** Id of the session at the provider. */
  readonly sessionId?: string | undefined;
  /** Local part for the account of a new user, without characters that user ids cannot contain. */
  readonly localpart?: string | undefined;
  /** Whether the user may choose another local part. */
  readonly confirmsLocalpart?: boolean;
  /** Local part of an existing account that the user may log in to, although it is not linked to the provider. */
  readonly existingLocalpart?: string | undefined;
  readonly displayName?: string | undefined;
  /** Mail addresses that belong to the user. */
  readonly emails?: readonly string[];
  /** URL of the avatar. */
  readonly picture?: string | undefined;
  /** Further members for the response to the client. */
  readonly members?: JsonObject;
}
