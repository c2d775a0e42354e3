/**
 * The interface to follow the streams. The main process has a `StreamWriter`, and a reader process has
 * `RemoteStreams`. Both deliver facts to the listeners of `Stream.subscribe`.
 */
export interface StreamReader {
  /** Every fact at or below this position is committed and has been delivered. */
  readonly current: number;
  /** Calls `listener` whenever `current` has grown, after the facts were delivered. */
  onAdvance(listener: (current: number) => void): void;
}
