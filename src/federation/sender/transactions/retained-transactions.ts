/** Maximum total size in characters of the transactions retained for unreachable servers. */
const maxCharacters = 16 * 1024 * 1024;

/**
 * Limits the memory for transactions that could not be delivered. Transactions in memory are repeated as they were;
 * other transactions are made again from the database, with another id.
 */
export class RetainedTransactions {
  #characters = 0;

  /** Reserves memory for a transaction of `size` characters. @returns whether there was enough memory */
  reserve(size: number): boolean {
    if (this.#characters + size > maxCharacters) return false;
    this.#characters += size;
    return true;
  }

  /** Frees memory that was reserved. */
  release(size: number): void {
    this.#characters -= size;
  }
}
