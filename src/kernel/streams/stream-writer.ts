import type { Writer } from '../database/database.ts';
import type { Publish, Reserve } from './reservation.ts';
import type { Stream } from './stream.ts';
import type { StreamReader } from './stream-reader.ts';

/**
 * What publishing facts takes. The process that writes has it as `LocalStreams`; in a process that follows it, every
 * method throws (`ReadOnlyStreams`).
 */
export interface StreamWriter extends StreamReader {
  /**
   * Runs `work` in a database transaction; what it publishes becomes visible when the transaction is on disk and
   * vanishes when it fails. Resolves when it has been delivered, so that a reader that asks next sees it.
   */
  write<S, T>(work: (writer: Writer<S>, publish: Publish) => Promise<T>): Promise<T>;
  /** Publishes a fact that lives in memory only. @returns its position */
  announce<F>(stream: Stream<F>, fact: F): number;
  /**
   * Runs `work`, which may reserve positions and hands them to a writer of its own that completes or abandons them.
   * When it throws, all of them are abandoned: a position that never settles would hold up all streams.
   * @param work must not wait for anything: a position that is reserved holds up those after it
   */
  reserving<T>(work: (reserve: Reserve) => T): T;
}
