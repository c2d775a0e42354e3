import { maxEdus, maxPdus } from './transaction.ts';

/** Events and EDUs in a transaction of the largest size. */
const largest = maxPdus + maxEdus;

/** Transactions of a single event or EDU that a server may refuse, one after the other, before it is left alone. */
const maxLeftOut = 5;

/**
 * How much goes into one transaction for a server. One that it refuses is divided, until it is known what the server
 * does not want; with what it takes they grow again.
 */
export class TransactionSize {
  /** Events and EDUs of all kinds. */
  #most = largest;
  #leftOut = 0;

  get most(): number {
    return this.#most;
  }

  /** A transaction was taken. */
  taken(): void {
    this.#most = Math.min(largest, this.#most * 2);
    this.#leftOut = 0;
  }

  /**
   * A transaction of so many was refused.
   * @returns what to do: send smaller ones; go on without the one that was in it; or leave the server alone, because
   * it takes nothing
   */
  refused(count: number): 'divide' | 'leave out' | 'wait' {
    if (count > 1) {
      this.#most = Math.max(1, Math.floor(count / 2));
      return 'divide';
    }
    this.#leftOut++;
    if (this.#leftOut < maxLeftOut) return 'leave out';
    this.#leftOut = 0;
    return 'wait';
  }
}
