import { jsonFacts, Stream } from '../kernel/streams/index.ts';
import type { UserRoom } from './membership/user-room.ts';

/** A change of stored rooms that no event makes: caches drop what is not stored any more. */
export type RoomRemoval =
  /** A user has forgotten a room, which they had left. */
  | { readonly kind: 'forgotten'; readonly userId: string; readonly room: UserRoom }
  /** Events are deleted, or the original content of redacted events is. `roomId`: they are events of this room, which stays. */
  | { readonly kind: 'pruned'; readonly eventNids: readonly number[]; readonly roomId?: string }
  /** A room is deleted: it is unknown from here on. */
  | { readonly kind: 'purged'; readonly roomId: string; readonly roomNid: number };

/** Makes the stream of removals of a room engine. */
export const removalStream = () => new Stream<RoomRemoval>('room_removals', jsonFacts());
