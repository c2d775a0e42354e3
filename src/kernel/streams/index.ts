export { Follower, type FollowerOptions } from './follower.ts';
export { streamMigrations } from './migrations/index.ts';
export type { Reservation } from './position-counter.ts';
export { type Publish, Stream, Streams } from './streams.ts';
export { decodePosition, encodePosition } from './token.ts';
