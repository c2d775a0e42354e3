/**
 * The interface to follow the streams. The process that writes has a `StreamWriter`, the others `RemoteStreams`; in
 * both, facts come through `Stream.subscribe`.
 */
export interface StreamReader {
  /** Every fact at or below this position is committed and has been delivered. */
  readonly current: number;
  /** Calls `listener` whenever `current` has grown, after the facts were delivered. */
  onAdvance(listener: (current: number) => void): void;
}
