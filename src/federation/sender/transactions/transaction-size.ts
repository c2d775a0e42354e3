import { maxEdus, maxPdus } from '../../transaction-limits.ts';

/** Maximum number of events and EDUs in a transaction. */
const maxItems = maxPdus + maxEdus;

/** Number of transactions with a single item that a server refuses in a row before it is put into backoff. */
const maxDropped = 5;

/**
 * Decides the number of items in each transaction to one server. The number is halved after a refused transaction,
 * until the refused item is found, and doubled after an acknowledged transaction.
 */
export class TransactionSize {
  /** Maximum number of events and EDUs of all kinds. */
  #limit = maxItems;
  #dropped = 0;

  /** Maximum number of events and EDUs of all kinds in the next transaction. */
  get limit(): number {
    return this.#limit;
  }

  /** Records that a transaction was acknowledged. */
  acknowledged(): void {
    this.#limit = Math.min(maxItems, this.#limit * 2);
    this.#dropped = 0;
  }

  /**
   * Records that a transaction with `count` items was refused.
   * @returns what to do: send smaller transactions, drop the single item, or back off from the server,
   * because it refuses everything
   */
  refused(count: number): 'divide' | 'leave out' | 'wait' {
    if (count > 1) {
      this.#limit = Math.max(1, Math.floor(count / 2));
      return 'divide';
    }
    this.#dropped++;
    if (this.#dropped < maxDropped) return 'leave out';
    this.#dropped = 0;
    return 'wait';
  }
}
