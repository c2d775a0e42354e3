import type { Writer } from '../database/database.ts';
import type { Publish, Reserve } from './reservation.ts';
import type { Stream } from './stream.ts';
import type { StreamReader } from './stream-reader.ts';

/**
 * The interface to publish facts. The main process has `LocalStreams`; in a process that follows it, every
 * method that publishes throws (`ReadOnlyStreams`).
 */
export interface StreamWriter extends StreamReader {
  /**
   * Runs `work` in a database transaction; its facts become visible when the transaction is on disk, and
   * are dropped when it fails. Resolves when they have been delivered, so that a later read includes them.
   */
  write<S, T>(work: (writer: Writer<S>, publish: Publish) => Promise<T>): Promise<T>;
  /** Publishes a fact that lives in memory only. @returns its position */
  announce<F>(stream: Stream<F>, fact: F): number;
  /**
   * Runs `work`, which may reserve positions and hands them to a writer of its own that completes or abandons them.
   * When it throws, all of them are abandoned: a position that never settles would hold up all streams.
   * @param work must not wait for anything: a reserved position holds up all later positions
   */
  reserving<T>(work: (reserve: Reserve) => T): T;
}
