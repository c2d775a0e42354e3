import type { UserRoom } from '../../room-engine/index.ts';
import type { MembershipTransition } from './membership-history.ts';

/** The rooms of a user, by id, as they are now. */
type Rooms = ReadonlyMap<string, UserRoom>;

/** With whom a user was in a room at a time, from where everybody is now and who came and went since. */
export class UsersSharingRooms {
  readonly #own: Rooms;
  readonly #userId: string;
  /** Of each user the passages in each room, oldest first. */
  readonly #passages = new Map<string, Map<string, MembershipTransition[]>>();

  /** @param passages all since the earliest time that will be asked for, oldest first */
  constructor(own: Rooms, passages: readonly MembershipTransition[], userId: string) {
    this.#own = own;
    this.#userId = userId;
    for (const passage of passages) {
      const ofUser = this.#passages.get(passage.userId) ?? new Map<string, MembershipTransition[]>();
      this.#passages.set(passage.userId, ofUser);
      const inRoom = ofUser.get(passage.roomId);
      if (inRoom) inRoom.push(passage);
      else ofUser.set(passage.roomId, [passage]);
    }
  }

  /** Whether both were in one of the rooms at that position. */
  shareRoomAt(other: string, rooms: Rooms, position: number): boolean {
    const candidates = [...rooms.keys(), ...(this.#passages.get(other)?.keys() ?? [])];
    return candidates.some(
      (roomId) =>
        this.#wasIn(other, rooms, roomId, position) && this.#wasIn(this.#userId, this.#own, roomId, position),
    );
  }

  /** Whether there was a time in `(after, upTo]` at which they were not. */
  stoppedSharing(other: string, rooms: Rooms, after: number, upTo: number): boolean {
    return [other, this.#userId]
      .flatMap((userId) => [...(this.#passages.get(userId)?.values() ?? [])].flat())
      .filter(({ joined, position }) => !joined && position > after && position <= upTo)
      .some(({ position }) => !this.shareRoomAt(other, rooms, position));
  }

  #wasIn(userId: string, rooms: Rooms, roomId: string, position: number): boolean {
    const next = this.#passages
      .get(userId)
      ?.get(roomId)
      ?.find((passage) => passage.position > position);
    return next ? !next.joined : rooms.get(roomId)?.membership === 'join';
  }
}
