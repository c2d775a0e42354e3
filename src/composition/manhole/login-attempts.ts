import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';
import { isRightLogin, type ManholeLogin } from './login.ts';

/**
 * Rate limit of wrong logins from one address: enough for typing mistakes, too few to try a list of
 * passwords.
 */
const failureLimit = { per_second: 0.1, burst_count: 10 };

/** Maximum number of addresses whose wrong logins are counted. */
const maxAddresses = 1_000;

export interface LoginAttemptsDeps {
  readonly login: ManholeLogin;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Checks logins to the debugging console. After too many wrong logins, an address must wait before it can try again.
 */
export class LoginAttempts {
  readonly #deps: LoginAttemptsDeps;
  readonly #failures: RateLimiter;

  constructor(deps: LoginAttemptsDeps) {
    this.#deps = deps;
    this.#failures = new RateLimiter(failureLimit, deps.clock, maxAddresses);
  }

  /** Whether a login from an address is admitted. Counts and logs wrong logins. */
  isAdmitted(given: ManholeLogin, ip: string): boolean {
    const { login, log } = this.#deps;
    try {
      this.#failures.check(ip);
    } catch {
      log.warn(
        { ip },
        'Refused a login to the debugging console after too many wrong logins from its address',
      );
      return false;
    }
    if (isRightLogin(given, login)) {
      log.info({ ip }, 'Login to the debugging console');
      return true;
    }
    this.#failures.tryTake(ip);
    log.warn({ ip }, 'Refused a login to the debugging console');
    return false;
  }
}
