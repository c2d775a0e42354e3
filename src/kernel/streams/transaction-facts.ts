import type { Publish, Reserve } from './reservation.ts';

/** The facts of one attempt of a transaction. Each reserved position is completed or abandoned when the attempt ends. */
export class TransactionFacts {
  readonly #reserve: Reserve;
  #published: { complete(): Promise<void>; abandon(): void }[] = [];
  #isOver = false;

  constructor(reserve: Reserve) {
    this.#reserve = reserve;
  }

  /**
   * Reserves a position for a fact. The transaction passes this function to its work.
   * @throws Error when the transaction has ended, for instance when a part of the work was not awaited
   */
  readonly publish: Publish = (stream, fact) => {
    if (this.#isOver) throw new Error('the transaction has ended: nothing can be published in it any more');
    const reservation = this.#reserve(stream);
    this.#published.push({
      complete: () => new Promise((resolve) => reservation.complete(fact, resolve)),
      abandon: () => reservation.abandon(),
    });
    return reservation.position;
  };

  /**
   * Completes all positions after the transaction is on disk. Resolves when its facts have been delivered.
   */
  async complete(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#published.map((reservation) => reservation.complete()));
  }

  /** Abandons all positions after the transaction has failed. */
  abandon(): void {
    this.#isOver = true;
    for (const reservation of this.#published) reservation.abandon();
  }
}
