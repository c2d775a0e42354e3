import type { JsonObject } from '../../../protocol/index.ts';

/** What a client was last sent of a room besides its events. */
export interface RoomDetails {
  readonly isDirect: boolean;
  /** Unread counts. */
  readonly counts: JsonObject;
}

/** Maximum number of remembered members of one room; more replace the earlier ones. */
const maxMembers = 500;

/**
 * Small parts of rooms that a client was sent on a connection, so that they are sent again only when they
 * have changed. They are in memory, and sent again after a restart.
 */
export class SentDetails {
  readonly #rooms = new Map<number, RoomDetails>();
  /** By room nid and user id: the nid of the membership event. */
  readonly #members = new Map<number, Map<string, number>>();

  room(roomNid: number): RoomDetails | undefined {
    return this.#rooms.get(roomNid);
  }

  set(roomNid: number, room: RoomDetails): void {
    this.#rooms.set(roomNid, room);
  }

  hasMember(roomNid: number, userId: string, eventNid: number): boolean {
    return this.#members.get(roomNid)?.get(userId) === eventNid;
  }

  addMembers(roomNid: number, members: ReadonlyMap<string, number>): void {
    const known = this.#members.get(roomNid);
    if (members.size === 0) return;
    if (!known || known.size + members.size > maxMembers) this.#members.set(roomNid, new Map(members));
    else for (const [userId, nid] of members) known.set(userId, nid);
  }

  deleteRoom(roomNid: number): void {
    this.#rooms.delete(roomNid);
    this.#members.delete(roomNid);
  }

  clear(): void {
    this.#rooms.clear();
    this.#members.clear();
  }
}
