/** Positions, the facts that have them, and what follows them (decision 0001). */
export { type FactCodec, jsonFacts } from './fact-codec.ts';
export { Follower, type FollowerOptions } from './follower.ts';
export { streamMigrations } from './migrations/index.ts';
export type { PublishedFact, PublishedRange } from './published-facts.ts';
export { type AnyStream, RemoteStreams, type RemoteStreamsDeps } from './remote-streams.ts';
export type { Publish, Reservation, Reserve } from './reservation.ts';
export { Sequence } from './sequence.ts';
export { Stream } from './stream.ts';
export type { StreamReader } from './stream-reader.ts';
export { StreamWriter, type StreamWriterDeps } from './stream-writer.ts';
export {
  decodePosition,
  decodeSyncPosition,
  encodePosition,
  encodeSyncPosition,
  type SyncPosition,
} from './token.ts';
