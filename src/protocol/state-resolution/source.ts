import type { RoomEvent } from '../event.ts';

/**
 * Provides state resolution with the events of one room. Synchronous: the caller first loads all events that may be
 * needed. The same event is looked up many times, so a look-up must be cheap.
 */
export interface StateResolutionSource {
  /**
   * Returns the event with that id, also a rejected one. Events that are not known take no part in a
   * resolution.
   */
  event(eventId: string): RoomEvent | undefined;

  /** Whether that event was rejected when it was received; by default no event was. */
  isRejected?(eventId: string): boolean;

  /**
   * Returns the auth difference of these sets of events: the events in the auth chain of at least one set,
   * but not of every set. An event is in a chain only if another event of the set leads to it. A store with
   * an index of auth chains answers this without walking them; by default they are walked (see
   * `authChainDifference`).
   */
  authChainDifference?(sets: readonly ReadonlySet<string>[]): Iterable<string>;

  /**
   * Returns the conflicted state subgraph: every event on a path of `auth_events` from one of these events to
   * another. Needed only since room version 12; by default the auth chains are walked (see `conflictedSubgraph`).
   */
  conflictedSubgraph?(conflicted: ReadonlySet<string>): Iterable<string>;
}
