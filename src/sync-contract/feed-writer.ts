import type { Stream } from '../kernel/streams/index.ts';

/** The part of a stream that followers of its facts need. */
export type FactStream<F> = Pick<Stream<F>, 'subscribe'>;

/** Writes to the feeds of users, at the position of each fact, that one source may have new data for them. */
export interface FeedWriter {
  /** Each fact concerns the users who are joined to a room, in that room. */
  followRooms<F>(stream: FactStream<F>, roomOf: (fact: F) => string): void;

  /** Each fact concerns some users, in one room if `roomOf` names one, or else outside of rooms. */
  followUsers<F>(
    stream: FactStream<F>,
    usersOf: (fact: F) => Iterable<string>,
    roomOf?: (fact: F) => string | undefined,
  ): void;

  /**
   * Each fact concerns the users who are joined to any of some rooms, outside of these rooms.
   * @param roomsOf may return a promise when the rooms have to be looked up: the facts then reach the feeds
   * late, at the position that is current by then, and until then the source itself must answer syncs with
   * them. Must not reject.
   */
  followMembers<F>(
    stream: FactStream<F>,
    roomsOf: (fact: F) => Iterable<string> | Promise<Iterable<string>>,
  ): void;
}
