/** Characters that all transactions together may hold which wait for a server to come back. */
const maxCharacters = 16 * 1024 * 1024;

/**
 * How much memory there is for transactions that could not be delivered. Those for which there is room are sent again
 * as they were; the others are made anew from what is on disk, under another id.
 */
export class RetainedTransactions {
  #characters = 0;

  /** @returns whether there was room */
  reserve(size: number): boolean {
    if (this.#characters + size > maxCharacters) return false;
    this.#characters += size;
    return true;
  }

  release(size: number): void {
    this.#characters -= size;
  }
}
