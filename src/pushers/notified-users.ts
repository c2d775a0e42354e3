import type { JsonObject } from '../protocol/index.ts';
import type { StoredEvent } from '../room-engine/index.ts';

/** How an event notifies a user. */
export interface EventNotification {
  /** The tweaks of the push rule that matched. */
  readonly tweaks: JsonObject;
}

/** Decides which users an event notifies; declared here, supplied at composition. */
export interface NotifiedUsers {
  /**
   * Returns how an event notifies the given local users; users whom it does not notify are absent.
   * @param userIds members of the room, or the user whom the event invites
   */
  of(stored: StoredEvent, userIds: readonly string[]): Promise<ReadonlyMap<string, EventNotification>>;
  /**
   * Returns how an event whose push was delayed notifies a user now; `undefined` when it does not any more, for
   * instance because the user has read it.
   */
  ofPending(stored: StoredEvent, userId: string): Promise<EventNotification | undefined>;
}

/** Counts the unread notifications of users; declared here, supplied at composition. */
export interface UnreadTotals {
  /**
   * Returns the unread count for a badge: the number of rooms or of messages, as `push.group_unread_count_by_room`
   * says.
   */
  of(userId: string): Promise<number>;
}
