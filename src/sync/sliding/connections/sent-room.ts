/**
 * How much of one part of a room was sent on a connection: nothing, all that was there at the client's position, or
 * what was there at an earlier one.
 */
export type SentPart = 'never' | 'live' | number;

/**
 * Extensions about rooms of which a connection remembers how much it has sent of each room. Their names are columns of
 * `sliding_sync_rooms`. The progress of other extensions is taken to be that of the timeline.
 */
const rememberedExtensions = ['receipts', 'account_data'] as const;

export type RememberedExtension = (typeof rememberedExtensions)[number];

export const isRemembered = (name: string): name is RememberedExtension =>
  (rememberedExtensions as readonly string[]).includes(name);

/** The parts of a room that are sent independently of each other. */
export const roomParts = ['timeline', ...rememberedExtensions] as const;

/** What was sent of a room on a connection. */
export interface SentRoom extends Readonly<Record<(typeof roomParts)[number], SentPart>> {
  /** So many of the newest events up to there the client has, if there are so many. */
  readonly timelineLimit: number;
  /** The state that the client was told of, as `RequiredState.text`. */
  readonly state: string;
}

/** Under this number a connection keeps what does not belong to a room. */
export const outsideOfRooms = 0;

export const nothingSent: SentRoom = {
  timeline: 'never',
  receipts: 'never',
  account_data: 'never',
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
