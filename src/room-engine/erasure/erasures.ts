import type { StoredEvent } from '../stored-event.ts';

/** The users who requested erasure; supplied at composition. */
export interface Erasures {
  /** Positions of the requests for erasure on the streams, by user id. */
  positions(): Promise<ReadonlyMap<string, number>>;
}

const noPositions: ReadonlyMap<string, number> = new Map();

/** No user has requested erasure. */
export const noErasures: Erasures = { positions: async () => noPositions };

/**
 * Returns the events that erasure hides, with the positions at which their senders requested erasure. State events stay
 * visible, because they belong to all members of the room, except the membership events that the user has sent, because
 * they contain names and avatars.
 */
export function erasedEvents(
  events: readonly StoredEvent[],
  positions: ReadonlyMap<string, number>,
): Map<StoredEvent, number> {
  const erased = new Map<StoredEvent, number>();
  if (positions.size === 0) return erased;
  for (const stored of events) {
    const { sender, stateKey, type } = stored.event;
    const position = positions.get(sender);
    const isPersonal = stateKey === undefined || type === 'm.room.member';
    if (position !== undefined && isPersonal) erased.set(stored, position);
  }
  return erased;
}

/**
 * Returns whether a reading user joined the room after an event was sent, but before its sender requested erasure: this
 * user could see the event before the erasure.
 * @param joins the positions of the reading user's joins of the room on the stream of events
 */
export const joinedBeforeErasure = (
  { stream = 0 }: StoredEvent,
  erasedAt: number,
  joins: readonly number[],
): boolean => joins.some((join) => join > stream && join < erasedAt);
