import { jsonFacts, Stream } from '../kernel/streams/index.ts';
import type { UserRoom } from './membership/user-room.ts';

/**
 * A deletion of stored room data, or a change of how it is stored, that is not the effect of an event. Caches drop the
 * data that it concerns.
 */
export type RoomRemoval =
  /** A user has forgotten a room, which they had left. */
  | { readonly kind: 'forgotten'; readonly userId: string; readonly room: UserRoom }
  /**
   * Events, or the original contents of redacted events, were deleted. `roomId` is present when all these events are of
   * one room; the room itself stays.
   */
  | { readonly kind: 'pruned'; readonly eventNids: readonly number[]; readonly roomId?: string }
  /** The chains of deltas of a room's state groups have changed; the states themselves are the same. */
  | { readonly kind: 'rebased'; readonly roomId: string }
  /** A room was deleted; after this fact it is unknown. */
  | { readonly kind: 'purged'; readonly roomId: string; readonly roomNid: number };

/** Creates the stream of removals of a room engine. */
export const removalStream = () => new Stream<RoomRemoval>('room_removals', jsonFacts());
