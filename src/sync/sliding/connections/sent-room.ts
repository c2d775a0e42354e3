/**
 * How much of one part of a room was sent on a connection: nothing, all that was there at the client's position, or
 * what was there at an earlier one.
 */
export type SentPart = 'never' | 'live' | number;

/** What was sent of a room on a connection. */
export interface SentRoom {
  readonly timeline: SentPart;
  readonly receipts: SentPart;
  readonly accountData: SentPart;
  /** So many of the newest events up to there the client has, if there are so many. */
  readonly timelineLimit: number;
  /** The state that the client was told of, as `RequiredState.text`. */
  readonly state: string;
}

/** The parts of a room that are sent independently of each other. */
export type RoomPartName = 'timeline' | 'receipts' | 'accountData';

const roomParts: readonly RoomPartName[] = ['timeline', 'receipts', 'accountData'];

/** Under this number a connection keeps what does not belong to a room. */
export const outsideOfRooms = 0;

export const nothingSent: SentRoom = {
  timeline: 'never',
  receipts: 'never',
  accountData: 'never',
  timelineLimit: 0,
  state: '[]',
};

/** Where to go on with a part for a client that is at `since`; `undefined`: from the beginning. */
export function sentUpTo(part: SentPart, since: number | undefined): number | undefined {
  if (since === undefined || part === 'never') return undefined;
  return part === 'live' ? since : part;
}

export function isSame(one: SentRoom | undefined, other: SentRoom | undefined): boolean {
  if (!one || !other) return one === other;
  return (
    roomParts.every((part) => one[part] === other[part]) &&
    one.timelineLimit === other.timelineLimit &&
    one.state === other.state
  );
}
