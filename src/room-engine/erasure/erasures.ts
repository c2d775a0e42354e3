import type { StoredEvent } from '../stored-event.ts';

/** Who has asked that what they sent is forgotten; supplied at composition. */
export interface Erasures {
  /** Where on the streams users asked for it, by user id. */
  positions(): Promise<ReadonlyMap<string, number>>;
}

const nobody: ReadonlyMap<string, number> = new Map();

export const noErasures: Erasures = { positions: async () => nobody };

/**
 * The events that erasure is about, with where on the streams their senders asked for it. The state of a room stays what
 * it is, for it belongs to all who are there; only who was there, and how they looked, goes with the user.
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
 * Whether somebody who was not there when an event was sent could see it before its sender asked for it to be forgotten:
 * they came in time.
 * @param joins where on the stream they joined the room
 */
export const joinedBeforeErasure = (
  { stream = 0 }: StoredEvent,
  erasedAt: number,
  joins: readonly number[],
): boolean => joins.some((join) => join > stream && join < erasedAt);
