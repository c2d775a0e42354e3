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
   * Events were deleted, or the original contents of redacted events. `roomId`: the room of all these events,
   * which itself stays.
   */
  | { readonly kind: 'pruned'; readonly eventNids: readonly number[]; readonly roomId?: string }
  /** State groups of a room have other groups as their base than before; their states are the same. */
  | { readonly kind: 'rebased'; readonly roomId: string }
  /** A room was deleted and is unknown from this fact on. */
  | { readonly kind: 'purged'; readonly roomId: string; readonly roomNid: number };

/** Makes the stream of removals of a room engine. */
export const removalStream = () => new Stream<RoomRemoval>('room_removals', jsonFacts());
