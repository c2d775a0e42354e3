/**
 * How much of one part of a room was sent on a connection: nothing, everything up to the client's position
 * (`live`), or everything up to an earlier position.
 */
export type SentPart = 'never' | 'live' | number;

/**
 * Extensions whose progress in each room is remembered by a connection. Their names are columns of
 * `sliding_sync_rooms`. Other extensions have no progress of their own: the progress of the timeline applies to them,
 * too.
 */
const rememberedExtensions = ['receipts', 'account_data'] as const;

export type RememberedExtension = (typeof rememberedExtensions)[number];

/** Whether a connection remembers the progress of an extension. */
export const isRemembered = (name: string): name is RememberedExtension =>
  (rememberedExtensions as readonly string[]).includes(name);

/** The parts of a room that are sent independently of each other. */
export const roomParts = ['timeline', ...rememberedExtensions] as const;

/** The parts of a room that a connection has received. */
export interface SentRoom extends Readonly<Record<(typeof roomParts)[number], SentPart>> {
  /** The client has at least this many of the newest events, or all events that it may receive. */
  readonly timelineLimit: number;
  /** The `required_state` that decided which state the client was sent, as `RequiredState.text`. */
  readonly requiredState: string;
}

/** Stands in place of a room nid for data that belongs to no room. */
export const outsideOfRooms = 0;

export const nothingSent: SentRoom = {
  timeline: 'never',
  receipts: 'never',
  account_data: 'never',
  timelineLimit: 0,
  requiredState: '[]',
};

/**
 * Returns the position up to which a client at `since` has a part; `undefined` when all of the part must be sent.
 */
export function sentUpTo(part: SentPart, since: number | undefined): number | undefined {
  if (since === undefined || part === 'never') return undefined;
  return part === 'live' ? since : part;
}

/** Whether the same parts of a room were sent. */
export function isSame(a: SentRoom | undefined, b: SentRoom | undefined): boolean {
  if (!a || !b) return a === b;
  return (
    roomParts.every((part) => a[part] === b[part]) &&
    a.timelineLimit === b.timelineLimit &&
    a.requiredState === b.requiredState
  );
}
