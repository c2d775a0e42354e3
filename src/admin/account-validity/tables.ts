/** The table of accounts whose validity ends. */
export interface AccountValidityTables {
  account_validity: {
    user_id: string;
    /** Milliseconds since the epoch. */
    expiration_ts: number;
    /** 1 when the account was locked because its validity ended. */
    is_expired: number;
  };
}
