/** The tables of single sign-on. */
export interface SsoTables {
  /** Users of identity providers, and their accounts on this server. */
  external_ids: {
    /** Id of the provider, for instance `oidc-example`. */
    auth_provider: string;
    /** The value by which the provider recognises the user. */
    external_id: string;
    user_id: string;
  };
  /** How the users of devices were authenticated, for logouts that a provider requests. */
  provider_sessions: {
    user_id: string;
    device_id: string;
    auth_provider: string;
    external_id: string;
    /** Id of the session at the provider; null when the provider named none. */
    session_id: string | null;
  };
}
