/** The tables of third-party identifiers. Times are milliseconds since the epoch. */
export interface ThirdPartyIdTables {
  /** Addresses of accounts. */
  third_party_ids: {
    /** `email` or `msisdn`. */
    medium: string;
    /** In canonical form. */
    address: string;
    user_id: string;
    validated_at: number;
    added_at: number;
  };
  /** Addresses that users have published at identity servers. */
  published_third_party_ids: {
    user_id: string;
    medium: string;
    address: string;
    /** Name of the identity server. */
    server: string;
  };
  /** Begun and completed validations of addresses, until they expire. */
  validation_sessions: {
    sid: string;
    medium: string;
    address: string;
    /** SHA-256 of the client's secret, base64url. */
    secret_hash: string;
    /** The purpose of the validation; the session is valid for no other purpose. */
    purpose: string;
    send_attempt: number;
    /** The session id of the service that validates phone numbers. */
    remote_sid: string | null;
    validated_at: number | null;
    expires_at: number;
  };
  /** Tokens in links: one for each mail of a session. */
  validation_tokens: {
    /** SHA-256 of the token, base64url. */
    token_hash: string;
    sid: string;
    next_link: string | null;
    expires_at: number;
  };
}
