/** The tables of the authorization server. Times are milliseconds since the epoch. */
export interface OAuthTables {
  oauth_clients: {
    client_id: string;
    /** JSON object: the registered metadata. */
    metadata: string;
    created_at: number;
    /** When the client last registered, or opened or refreshed a session; lags by up to a day, because not every use is written. */
    last_used_at: number;
  };
  /** Sessions that were opened by OAuth 2.0: each is one device. */
  oauth_sessions: {
    user_id: string;
    device_id: string;
    client_id: string;
    scope: string;
  };
  /**
   * Refresh tokens that were exchanged. A token that is sent again, after its successor was used, is a sign
   * of theft.
   */
  oauth_exchanged_tokens: {
    /** SHA-256 of the token, base64url. */
    hash: string;
    user_id: string;
    device_id: string;
    exchanged_at: number;
  };
  oauth_codes: {
    /** SHA-256 of the code, base64url. */
    hash: string;
    client_id: string;
    user_id: string;
    device_id: string;
    scope: string;
    redirect_uri: string;
    /** SHA-256 of the code verifier, base64url. */
    code_challenge: string;
    expires_at: number;
    /** Whether the code has been exchanged for tokens: 0 or 1. */
    redeemed: number;
    /** JSON of the session at the identity provider that has authenticated the user; null for a password. */
    provider_session: string | null;
  };
  oauth_device_grants: {
    /** SHA-256 of the device code, base64url. */
    hash: string;
    /** The code that the user enters, without its hyphen. */
    user_code: string;
    client_id: string;
    device_id: string;
    scope: string;
    expires_at: number;
    /** When the client last polled for its tokens; 0 before the first poll. */
    polled_at: number;
    decision: 'pending' | 'approved' | 'denied' | 'redeemed';
    /** The user who has allowed or refused the login; null until then. */
    user_id: string | null;
    /** JSON of the session at the identity provider that has authenticated the user; null for a password. */
    provider_session: string | null;
  };
  /** Browsers in which users are signed in to the pages of this server. */
  browser_sessions: {
    /** SHA-256 of the value of the cookie, base64url. */
    hash: string;
    user_id: string;
    /** When the user last entered a password, at this server or at an identity provider that had to ask for it; else 0. */
    authenticated_at: number;
    expires_at: number;
    /** JSON of the session at the identity provider that has authenticated the user; null for a password. */
    provider_session: string | null;
  };
  /** Users who may replace their cross-signing keys with the next upload. */
  cross_signing_resets: {
    user_id: string;
    expires_at: number;
  };
}
