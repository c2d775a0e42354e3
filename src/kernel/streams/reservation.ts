import type { Stream } from './stream.ts';

/** A position for a fact that is not certain yet. It must always be completed or abandoned. */
export interface Reservation<F> {
  readonly position: number;
  /**
   * Must be called when the fact is on disk, or at once for a fact that is not stored. The fact is delivered when all
   * lower positions are completed or abandoned.
   * @param delivered called after the delivery. Only then may a client receive its answer, because its next request is
   * answered from memory that follows the streams
   */
  complete(fact: F, delivered?: () => void): void;
  /** Must be called when there will be no fact: the position stays unused. */
  abandon(): void;
}

/** Reserves a position on a stream. */
export type Reserve = <F>(stream: Stream<F>) => Reservation<F>;

/** Assigns a position on its stream to a fact; the fact is delivered once the transaction is on disk. */
export type Publish = <F>(stream: Stream<F>, fact: F) => number;
