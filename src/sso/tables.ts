/** The tables of single sign-on. */
export interface SsoTables {
  /** Users of identity providers, and their accounts on this server. */
  external_ids: {
    /** Id of the provider, for instance `oidc-example`. */
    auth_provider: string;
    /** The value that identifies the user at the provider. */
    external_id: string;
    user_id: string;
    /** Entity id of the SAML identity provider that has authenticated the user; null when it is unknown. */
    issuer: string | null;
  };
  /** The provider and session by which each device was logged in, for logouts that the provider requests. */
  provider_sessions: {
    user_id: string;
    device_id: string;
    auth_provider: string;
    external_id: string;
    /** Id of the session at the provider; null when the provider named none. */
    session_id: string | null;
  };
  /** Assertions of SAML that have logged users in and have not expired. */
  used_assertions: {
    /** SHA-256 of the issuer and the id. */
    assertion_hash: string;
    expires_at: number;
  };
}
