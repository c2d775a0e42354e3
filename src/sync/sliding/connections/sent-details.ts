import type { JsonObject } from '../../../protocol/index.ts';

/** What a client was last told of a room besides its events. */
export interface RoomDetails {
  readonly isDirect: boolean;
  /** What is unread. */
  readonly counts: JsonObject;
}

/** Members of one room that are remembered; with more, those before are forgotten. */
const maxMembers = 500;

/**
 * Small things that a client was told on a connection, so that they are told again only when they have changed. In
 * memory: what is forgotten is told again.
 */
export class SentDetails {
  readonly #rooms = new Map<number, RoomDetails>();
  /** Room to user to the number of the membership event. */
  readonly #members = new Map<number, Map<string, number>>();

  room(roomNid: number): RoomDetails | undefined {
    return this.#rooms.get(roomNid);
  }

  tell(roomNid: number, room: RoomDetails): void {
    this.#rooms.set(roomNid, room);
  }

  knowsMember(roomNid: number, userId: string, eventNid: number): boolean {
    return this.#members.get(roomNid)?.get(userId) === eventNid;
  }

  tellMembers(roomNid: number, members: ReadonlyMap<string, number>): void {
    const known = this.#members.get(roomNid);
    if (members.size === 0) return;
    if (!known || known.size + members.size > maxMembers) this.#members.set(roomNid, new Map(members));
    else for (const [userId, nid] of members) known.set(userId, nid);
  }

  forgetRoom(roomNid: number): void {
    this.#rooms.delete(roomNid);
    this.#members.delete(roomNid);
  }

  clear(): void {
    this.#rooms.clear();
    this.#members.clear();
  }
}
