import type { Clock } from '../../clock.ts';
import { RateLimiter } from '../../rate-limits/index.ts';
import { BytesInMemory, type CountedBody } from './bytes-in-memory.ts';

/**
 * Maximum bytes of long bodies that wait to be verified and parsed. A body is long if its `Content-Length` is more than
 * `maxShortBytes`, or is absent.
 */
export interface UnverifiedBounds {
  /** From one IP address. */
  readonly ofAddress: number;
  readonly total: number;
}

/** One IP address may send two of the largest transactions at a time; a homeserver sends only one. */
export const defaultUnverifiedBounds: UnverifiedBounds = {
  ofAddress: 32 * 1024 * 1024,
  total: 128 * 1024 * 1024,
};

/** Rate limit of the long bodies with invalid signatures from one IP address. */
const failuresOfAddress = { per_second: 0.02, burst_count: 3 };

/** Rate limit of the long bodies with invalid signatures from all IP addresses together. */
const failuresOfAll = { per_second: 0.5, burst_count: 30 };

/** A long body that is in memory and has not been both verified and parsed. */
export interface UnverifiedBody extends CountedBody {
  /** Counts a signature that turned out to be invalid. */
  failed(): void;
}

/**
 * Bounds the bytes of long bodies of other servers that are in memory until they have been verified and parsed, and how
 * often one IP address may send such bodies with invalid signatures.
 */
export class UnverifiedBodies {
  readonly #bytes: BytesInMemory;
  readonly #failures: RateLimiter;
  readonly #allFailures: RateLimiter;

  constructor(clock: Clock, { ofAddress, total }: UnverifiedBounds = defaultUnverifiedBounds) {
    this.#bytes = new BytesInMemory({ ofSender: ofAddress, total });
    this.#failures = new RateLimiter(failuresOfAddress, clock);
    this.#allFailures = new RateLimiter(failuresOfAll, clock, 1);
  }

  /** Bytes of the bodies of all addresses that have not been released. */
  get total(): number {
    return this.#bytes.total;
  }

  /** Begins to count the bytes of a body. @throws MatrixError M_LIMIT_EXCEEDED after too many `failed` of the address */
  open(ip: string): UnverifiedBody {
    this.#failures.check(ip);
    return {
      ...this.#bytes.open(ip),
      failed: () => {
        this.#failures.tryTake(ip);
        this.#allFailures.tryTake('');
      },
    };
  }

  /**
   * Checks whether a long body that is not canonical JSON may be parsed. Its signature can only be verified after that.
   * @throws MatrixError M_LIMIT_EXCEEDED after too many invalid signatures from all IP addresses together
   */
  checkFailuresOfAll(): void {
    this.#allFailures.check('');
  }
}
