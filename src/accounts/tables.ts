import type { Generated } from 'kysely';

/** The tables of accounts. Times are milliseconds since the epoch, flags are 0 or 1. */
export interface AccountTables {
  users: {
    user_id: string;
    /** `user_id` in lower case, because historical user ids may differ from a new one in case only. */
    folded_id: string;
    created_at: number;
    /** Null for guests and for accounts without a password. */
    password_hash: string | null;
    user_type: string | null;
    appservice_id: string | null;
    is_guest: number;
    is_admin: number;
    is_deactivated: number;
    is_erased: number;
    is_locked: number;
    is_suspended: number;
    /** Whether the user's events are accepted and not sent. */
    is_shadow_banned: Generated<number>;
  };
  access_tokens: {
    id: number;
    /** SHA-256 of the token; for the token of a guest its MAC; base64url. */
    hash: string;
    user_id: string;
    /** Null in a session without a device, which an administrator has opened to act as the user. */
    device_id: string | null;
    /** The refresh token that was issued together with the access token. */
    refresh_token_id: number | null;
    /** The refresh token that was exchanged for this access token; null once the access token has been used. */
    replaces_refresh_token_id: number | null;
    created_at: number;
    expires_at: number | null;
    /** When the user of this token last authenticated; 0 when that was before the token was issued. */
    confirmed_at: number;
    /** The administrator who logged in as the user; null when the user logged in. */
    issued_by: Generated<string | null>;
  };
  refresh_tokens: {
    id: number;
    /** SHA-256 of the token, base64url. */
    hash: string;
    user_id: string;
    device_id: string;
    /** The refresh token that was exchanged for this one; null once this one or its access token has been used. */
    replaces_id: number | null;
    created_at: number;
    expires_at: number | null;
    /** When the session ends, however often it is refreshed. */
    session_expires_at: number | null;
  };
  interactive_sessions: {
    /** SHA-256 of the session id, base64url; the id itself is the key of `sealed_body`. */
    id_hash: string;
    /** Null for a registration. */
    user_id: string | null;
    created_at: number;
    /** SHA-256 of the operation, base64url. */
    operation: string;
    /** MAC of the parameters of the request, keyed by the session id; base64url. */
    body_digest: string;
    /** The encrypted parameters of the request; the encrypted result once the operation has been carried out. */
    sealed_body: Uint8Array;
    /** Whether the operation has been carried out: 0 or 1. */
    answered: Generated<number>;
    /** JSON object: completed stage to its result. */
    completed: string;
    /** The registration token that has a use reserved for this session. */
    registration_token: Generated<string | null>;
  };
  user_consents: {
    user_id: string;
    /** Version of the policy. */
    version: string;
    agreed_at: number;
  };
  login_tokens: {
    /** MAC of the token, base64url. */
    hash: string;
    user_id: string;
    expires_at: number;
    /** JSON object: how the user was authenticated. */
    details: Generated<string | null>;
  };
  registration_tokens: {
    token: string;
    /** Maximum number of accounts that may be registered with the token; null for any number. */
    uses_allowed: number | null;
    /** Number of accounts that were registered with the token. */
    completed: number;
    expiry_time: number | null;
  };
}
