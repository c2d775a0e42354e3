/**
 * Streams (decision 0001). A stream delivers facts after each commit: ids and small JSON about a change that clients or
 * servers may have to learn. Each fact has a position, and followers read the facts in the order of their positions.
 */
export { FactBuffer } from './fact-buffer.ts';
export { type FactCodec, jsonFacts } from './fact-codec.ts';
export { Follower, type FollowerOptions } from './follower.ts';
export { LocalStreams, type LocalStreamsDeps } from './local-streams.ts';
export { streamMigrations } from './migrations/index.ts';
export type { PublishedFact, PublishedRange } from './published-facts.ts';
export { ReadOnlyStreams } from './read-only-streams.ts';
export { type AnyStream, RemoteStreams, type RemoteStreamsDeps } from './remote-streams.ts';
export type { Publish, Reservation, Reserve } from './reservation.ts';
export { Sequence } from './sequence.ts';
export { forgetCursor, skipAssignedNumbers } from './store.ts';
export { Stream } from './stream.ts';
export type { StreamReader } from './stream-reader.ts';
export type { StreamWriter } from './stream-writer.ts';
export {
  decodePosition,
  decodeSyncPosition,
  encodePosition,
  encodeSyncPosition,
  type SyncPosition,
} from './token.ts';
