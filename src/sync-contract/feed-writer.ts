import type { Stream } from '../kernel/streams/index.ts';

/** The part of a stream that a follower needs. Facts are the changes that a stream publishes. */
export type FactStream<F> = Pick<Stream<F>, 'subscribe'>;

/**
 * Marks in the feeds of users that one source may have new data for them, at the stream position of each fact. The feed
 * of a user lists, in memory, the recent changes that concern the user.
 */
export interface FeedWriter {
  /** Follows a stream whose facts each concern one room: marks the room as changed for its joined users. */
  followRooms<F>(stream: FactStream<F>, roomOf: (fact: F) => string): void;

  /**
   * Follows a stream whose facts each concern some users: marks for these users the room that `roomOf` returns, or the
   * data outside of rooms, as changed.
   */
  followUsers<F>(
    stream: FactStream<F>,
    usersOf: (fact: F) => Iterable<string>,
    roomOf?: (fact: F) => string | undefined,
  ): void;

  /**
   * Follows a stream whose facts each concern some rooms: marks the data outside of rooms as changed for the users who
   * are joined to at least one of these rooms.
   * @param roomsOf may return a promise, which must not reject, when the rooms have to be looked up. The fact then
   * reaches the feeds late, at the position that is current at that time; until then the source itself must include the
   * fact in syncs.
   */
  followMembers<F>(
    stream: FactStream<F>,
    roomsOf: (fact: F) => Iterable<string> | Promise<Iterable<string>>,
  ): void;
}
