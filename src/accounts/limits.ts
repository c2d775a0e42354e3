/** A rate limiter by key. */
export interface Limiter {
  /**
   * Counts one action.
   * @throws MatrixError M_LIMIT_EXCEEDED
   */
  take(key: string): void;
  /** Throws MatrixError M_LIMIT_EXCEEDED when `take` would, without counting an action. */
  check(key: string): void;
}

/** Limiters of the options `rc_registration` and `rc_login`. */
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
