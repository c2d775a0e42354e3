import type { Writer } from '../database/database.ts';
import type { Publish, Reserve } from './reservation.ts';
import type { Stream } from './stream.ts';
import type { StreamReader } from './stream-reader.ts';

/**
 * The interface to publish facts. The main process has `LocalStreams`. A process that follows the main process has
 * `ReadOnlyStreams`, in which every method that publishes fails.
 */
export interface StreamWriter extends StreamReader {
  /**
   * Runs `work` in a database transaction. The facts that `work` publishes are delivered when the transaction is on
   * disk, and dropped when it fails. Resolves when the facts have been delivered, so that a later read includes them.
   */
  write<S, T>(work: (writer: Writer<S>, publish: Publish) => Promise<T>): Promise<T>;
  /** Publishes a fact that lives in memory only. @returns its position */
  announce<F>(stream: Stream<F>, fact: F): number;
  /**
   * Runs `work`, which may reserve positions. `work` must hand each reservation to code that completes or abandons it.
   * When `work` throws, all its reservations are abandoned, because an open one would hold up all streams.
   * @param work must not wait for anything: a reserved position holds up all later positions
   */
  reserving<T>(work: (reserve: Reserve) => T): T;
}
