import type { RateLimit } from '../kernel/rate-limits/index.ts';

/** Limits the rate of actions for each key, for instance a user id. */
export interface Limiter {
  /**
   * Counts one action.
   * @throws MatrixError M_LIMIT_EXCEEDED
   */
  take(key: string): void;
  /** Throws MatrixError M_LIMIT_EXCEEDED when `take` would, without counting an action. */
  check(key: string): void;
}

/**
 * Limiters of the options `rc_registration`, `rc_registration_token_validity` and `rc_login`, and of actions without an
 * option of their own.
 */
export interface AccountLimits {
  /** Registrations, by client address. */
  readonly registration: Limiter;
  /** Checks whether user names are available, by client address. */
  readonly availability: Limiter;
  /** Checks of registration tokens, by client address. */
  readonly tokenValidity: Limiter;
  /** New sessions of interactive authentication, by user id; by client address when the user is unknown. */
  readonly challenges: Limiter;
  /** Login tokens that a session issues, by user id. */
  readonly loginTokens: Limiter;
  readonly login: {
    /** Logins, by client address. */
    readonly address: Limiter;
    /** Logins, by user id. */
    readonly account: Limiter;
    /** Failed logins, by user id. */
    readonly failedAttempts: Limiter;
  };
}

/** The rate of `loginTokens`: enough for a user who logs in on some devices. */
export const loginTokenRate: RateLimit = { per_second: 0.1, burst_count: 10 };

/** Minimum rate of `challenges`. */
const minChallengeRate: RateLimit = { per_second: 0.5, burst_count: 50 };

/** Maximum number of new sessions of interactive authentication in one registration. */
const challengesPerRegistration = 3;

/** Returns a rate of `challenges` that allows all registrations that `rc_registration` allows. */
export const challengeRate = (registration: RateLimit): RateLimit =>
  rateAtLeast(minChallengeRate, registration, challengesPerRegistration);

/**
 * Minimum rate of `availability`: often enough for a form that checks while a name is typed, too rarely to try a list
 * of names.
 */
const minAvailabilityRate: RateLimit = { per_second: 1, burst_count: 10 };

/** Maximum number of checks of user names in one registration. */
const checksPerRegistration = 3;

/** Returns a rate of `availability` that does not prevent registrations that `rc_registration` allows. */
export const availabilityRate = (registration: RateLimit): RateLimit =>
  rateAtLeast(minAvailabilityRate, registration, checksPerRegistration);

/** Returns the rate that allows a number of actions for each registration, and at least `min`. */
const rateAtLeast = (min: RateLimit, registration: RateLimit, actions: number): RateLimit => ({
  per_second: Math.max(min.per_second, registration.per_second * actions),
  burst_count: Math.max(min.burst_count, registration.burst_count * actions),
});
