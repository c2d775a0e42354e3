import type { UserRoom } from '../../room-engine/index.ts';
import type { MembershipTransition } from './membership-history.ts';

/** The current rooms of a user by room id. */
type Rooms = ReadonlyMap<string, UserRoom>;

/**
 * Computes whether two users shared a room at an earlier position. Needs the current rooms of both users, and the
 * transitions of their memberships since that position.
 */
export class UsersSharingRooms {
  readonly #ownRooms: Rooms;
  readonly #userId: string;
  /** Transitions of each user in each room, oldest first, by user id and room id. */
  readonly #transitions = new Map<string, Map<string, MembershipTransition[]>>();

  /** @param transitions all transitions after the earliest position that is passed to the methods, oldest first */
  constructor(ownRooms: Rooms, transitions: readonly MembershipTransition[], userId: string) {
    this.#ownRooms = ownRooms;
    this.#userId = userId;
    for (const transition of transitions) {
      const userTransitions =
        this.#transitions.get(transition.userId) ?? new Map<string, MembershipTransition[]>();
      this.#transitions.set(transition.userId, userTransitions);
      const inRoom = userTransitions.get(transition.roomId);
      if (inRoom) inRoom.push(transition);
      else userTransitions.set(transition.roomId, [transition]);
    }
  }

  /** Reports whether both users were joined to the same room at a position. */
  shareRoomAt(otherUserId: string, rooms: Rooms, position: number): boolean {
    const candidates = [...rooms.keys(), ...(this.#transitions.get(otherUserId)?.keys() ?? [])];
    return candidates.some(
      (roomId) =>
        this.#wasJoined(otherUserId, rooms, roomId, position) &&
        this.#wasJoined(this.#userId, this.#ownRooms, roomId, position),
    );
  }

  /** Reports whether the user joined a room in `(after, upTo]` while the other user was joined to it. */
  joinedRoomOf(otherUserId: string, rooms: Rooms, after: number, upTo: number): boolean {
    return [...(this.#transitions.get(this.#userId)?.entries() ?? [])].some(([roomId, transitions]) =>
      transitions.some(
        ({ joined, position }) =>
          joined &&
          position > after &&
          position <= upTo &&
          this.#wasJoined(otherUserId, rooms, roomId, position),
      ),
    );
  }

  /** Reports whether the two users shared no room at some position in `(after, upTo]`. */
  stoppedSharing(otherUserId: string, rooms: Rooms, after: number, upTo: number): boolean {
    return [otherUserId, this.#userId]
      .flatMap((userId) => [...(this.#transitions.get(userId)?.values() ?? [])].flat())
      .filter(({ joined, position }) => !joined && position > after && position <= upTo)
      .some(({ position }) => !this.shareRoomAt(otherUserId, rooms, position));
  }

  #wasJoined(userId: string, rooms: Rooms, roomId: string, position: number): boolean {
    const next = this.#transitions
      .get(userId)
      ?.get(roomId)
      ?.find((transition) => transition.position > position);
    return next ? !next.joined : rooms.get(roomId)?.membership === 'join';
  }
}
