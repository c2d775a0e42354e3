/**
 * What following the streams takes. The process that writes has it as `StreamWriter`, the others as `RemoteStreams`;
 * facts come through `Stream.subscribe` in both.
 */
export interface StreamReader {
  /** Every fact at or below this position is committed and has been delivered. */
  readonly current: number;
  /** Calls `listener` whenever `current` has grown, after the facts were delivered. */
  onAdvance(listener: (current: number) => void): void;
}
