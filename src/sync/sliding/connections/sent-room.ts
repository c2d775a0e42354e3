/**
 * How much of one part of a room was sent on a connection: nothing, everything up to the client's position
 * (`live`), or everything up to an earlier position.
 */
export type SentPart = 'never' | 'live' | number;

/**
 * Extensions whose progress in each room is remembered by a connection. Their names are columns of
 * `sliding_sync_rooms`. The progress of other extensions is that of the timeline.
 */
const rememberedExtensions = ['receipts', 'account_data'] as const;

export type RememberedExtension = (typeof rememberedExtensions)[number];

export const isRemembered = (name: string): name is RememberedExtension =>
  (rememberedExtensions as readonly string[]).includes(name);

/** The parts of a room that are sent independently of each other. */
export const roomParts = ['timeline', ...rememberedExtensions] as const;

/** The parts of a room that a connection has received. */
export interface SentRoom extends Readonly<Record<(typeof roomParts)[number], SentPart>> {
  /** Maximum number of the newest events that the client has. */
  readonly timelineLimit: number;
  /** The required state that the client was sent, as `RequiredState.text`. */
  readonly state: string;
}

/** The room nid under which a connection stores what does not belong to a room. */
export const outsideOfRooms = 0;

export const nothingSent: SentRoom = {
  timeline: 'never',
  receipts: 'never',
  account_data: 'never',
  timelineLimit: 0,
  state: '[]',
};

/** Returns the position after which a part must be sent to a client at `since`; `undefined`: all of it. */
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
