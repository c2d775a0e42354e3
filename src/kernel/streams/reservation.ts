import type { Stream } from './stream.ts';

/** A position for a fact that is not certain yet: complete or abandon it, always. */
export interface Reservation<F> {
  readonly position: number;
  /**
   * Call this when the fact is on disk, or is not stored at all: it is delivered once all lower positions
   * have settled.
   * @param delivered called after the delivery. Only then may a client receive its answer, because its next
   * request is answered from memory that follows the streams
   */
  complete(fact: F, delivered?: () => void): void;
  /** Call this when there will be no fact: the position stays unused. */
  abandon(): void;
}

/** Reserves a position on a stream. @throws Error when the positions on disk could not be extended in time */
export type Reserve = <F>(stream: Stream<F>) => Reservation<F>;

/** Gives a fact a position on its stream; the fact is delivered once the transaction is on disk. */
export type Publish = <F>(stream: Stream<F>, fact: F) => number;
