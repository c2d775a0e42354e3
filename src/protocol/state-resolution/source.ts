import type { RoomEvent } from '../event.ts';

/**
 * Where state resolution finds the events of one room. All of it is synchronous: whoever resolves state loads
 * what may be asked for first. The same event is asked for many times, so the answer must be a cheap look-up.
 */
export interface StateResolutionSource {
  /** The event with that id, rejected ones included. Events that are not known take no part in a resolution. */
  event(eventId: string): RoomEvent | undefined;

  /** Whether that event was rejected when it was received; by default none was. */
  isRejected?(eventId: string): boolean;

  /**
   * The auth difference of these sets of events: what is in the auth chain of at least one set, but not of every
   * set. An event is in a chain only if another event of the set leads to it. A store with an index over auth
   * chains answers this without walking them; by default they are walked (see `authChainDifference`).
   */
  authChainDifference?(sets: readonly ReadonlySet<string>[]): Iterable<string>;

  /**
   * The conflicted state subgraph: every event on a path of `auth_events` from one of these events to another.
   * Asked for since v12 only; by default the auth chains are walked (see `conflictedSubgraph`).
   */
  conflictedSubgraph?(conflicted: ReadonlySet<string>): Iterable<string>;
}
