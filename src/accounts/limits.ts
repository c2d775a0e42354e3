/** A rate limit per key. */
export interface Limiter {
  /** Counts one action. Throws MatrixError M_LIMIT_EXCEEDED when there were too many. */
  take(key: string): void;
  /** Counts nothing. Throws MatrixError M_LIMIT_EXCEEDED when `take` would. */
  check(key: string): void;
}

/** The options `rc_registration` and `rc_login`. */
export interface AccountLimits {
  /** Registrations, by client address. */
  readonly registration: Limiter;
  readonly login: {
    /** Logins, by client address. */
    readonly address: Limiter;
    /** Logins, by user id. */
    readonly account: Limiter;
    /** Failed logins, by user id. */
    readonly failedAttempts: Limiter;
  };
}
