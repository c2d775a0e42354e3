/** The tables of OpenID tokens. */
export interface OpenIdTables {
  openid_tokens: {
    /** SHA-256 of the token, base64url. */
    hash: string;
    user_id: string;
    /** Milliseconds since the epoch. */
    expires_ts: number;
  };
}
