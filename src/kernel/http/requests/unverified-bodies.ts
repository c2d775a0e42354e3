import { limitExceeded } from '../../../protocol/index.ts';
import type { Clock } from '../../clock.ts';
import { addressKey, RateLimiter } from '../../rate-limits/index.ts';

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

/** Milliseconds after which a server may repeat a request that was refused because too many bytes wait. */
const retryAfter = 5_000;

/** A long body that is in memory and has not been both verified and parsed. */
export interface UnverifiedBody {
  /** Counts bytes that have arrived. @throws MatrixError M_LIMIT_EXCEEDED when too many wait */
  add(bytes: number): void;
  /** Counts a signature that turned out to be invalid. */
  failed(): void;
  /** Ends the count of the body's bytes: it has been processed or dropped. */
  release(): void;
}

/**
 * Bounds the bytes of long bodies of other servers that are in memory until they have been verified and parsed, and how
 * often one IP address may send such bodies with invalid signatures.
 */
export class UnverifiedBodies {
  readonly #bytes = new Map<string, number>();
  readonly #failures: RateLimiter;
  readonly #allFailures: RateLimiter;
  readonly #bounds: UnverifiedBounds;
  #total = 0;

  constructor(clock: Clock, bounds: UnverifiedBounds = defaultUnverifiedBounds) {
    this.#bounds = bounds;
    this.#failures = new RateLimiter(failuresOfAddress, clock);
    this.#allFailures = new RateLimiter(failuresOfAll, clock, 1);
  }

  /** Bytes of the bodies of all addresses that have not been released. */
  get total(): number {
    return this.#total;
  }

  /** Begins to count the bytes of a body. @throws MatrixError M_LIMIT_EXCEEDED after too many `failed` of the address */
  open(ip: string): UnverifiedBody {
    const address = addressKey(ip);
    this.#failures.check(address);
    let size = 0;
    return {
      add: (bytes) => {
        const bytesOfAddress = (this.#bytes.get(address) ?? 0) + bytes;
        if (bytesOfAddress > this.#bounds.ofAddress || this.#total + bytes > this.#bounds.total)
          throw limitExceeded(retryAfter);
        size += bytes;
        this.#bytes.set(address, bytesOfAddress);
        this.#total += bytes;
      },
      failed: () => {
        this.#failures.tryTake(address);
        this.#allFailures.tryTake('');
      },
      release: () => {
        const left = (this.#bytes.get(address) ?? 0) - size;
        if (left > 0) this.#bytes.set(address, left);
        else this.#bytes.delete(address);
        this.#total -= size;
        size = 0;
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
