export { Follower, type FollowerOptions } from './follower.ts';
export { streamMigrations } from './migrations/index.ts';
export { Sequence } from './sequence.ts';
export { type Publish, type Reservation, Stream, Streams } from './streams.ts';
export {
  decodePosition,
  decodeSyncPosition,
  encodePosition,
  encodeSyncPosition,
  type SyncPosition,
} from './token.ts';
