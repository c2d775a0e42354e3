import type { JsonObject } from '../../../protocol/index.ts';

/** Two fields of a room's entry as they were last sent to the client: `is_dm` and the unread counts. */
export interface RoomDetails {
  readonly isDirect: boolean;
  /** Unread counts. */
  readonly counts: JsonObject;
}

/** Maximum number of remembered members of one room. When it is exceeded, the earlier members are forgotten. */
const maxMembers = 500;

/** Estimated bytes of the details of a room. */
const detailsBytes = 250;

/** Estimated bytes of the map of sent members of a room, without members. */
const mapBytes = 150;

/** Estimated bytes of a member besides the characters of the user id. */
const memberBytes = 60;

interface Members {
  /** nids of the sent membership events, by user id. */
  readonly nids: Map<string, number>;
  /** Estimated bytes in memory. */
  bytes: number;
}

/**
 * Small parts of rooms that a client was sent on a connection, so that they are sent again only when they
 * have changed. They are in memory, and sent again after a restart.
 */
export class SentDetails {
  /** The details that were sent last, by room nid. */
  readonly #rooms = new Map<number, RoomDetails>();
  /** The sent members, by room nid. */
  readonly #members = new Map<number, Members>();
  #membersBytes = 0;

  /** Estimated bytes in memory. */
  get bytes(): number {
    return this.#rooms.size * detailsBytes + this.#membersBytes;
  }

  /** Returns the details of a room that were sent last. */
  room(roomNid: number): RoomDetails | undefined {
    return this.#rooms.get(roomNid);
  }

  /** Records the details of a room that are sent. */
  set(roomNid: number, room: RoomDetails): void {
    this.#rooms.set(roomNid, room);
  }

  /** Whether a membership event was sent. */
  hasMember(roomNid: number, userId: string, eventNid: number): boolean {
    return this.#members.get(roomNid)?.nids.get(userId) === eventNid;
  }

  /** Records the membership events that are sent. @param members nids by user id */
  addMembers(roomNid: number, members: ReadonlyMap<string, number>): void {
    if (members.size === 0) return;
    let sent = this.#members.get(roomNid);
    if (!sent || sent.nids.size + members.size > maxMembers) {
      this.#deleteMembers(roomNid);
      sent = { nids: new Map(), bytes: mapBytes };
      this.#members.set(roomNid, sent);
      this.#membersBytes += sent.bytes;
    }
    for (const [userId, nid] of members) {
      const added = sent.nids.has(userId) ? 0 : memberBytes + userId.length;
      sent.nids.set(userId, nid);
      sent.bytes += added;
      this.#membersBytes += added;
    }
  }

  /** Forgets a room, so that its details are sent again. */
  deleteRoom(roomNid: number): void {
    this.#rooms.delete(roomNid);
    this.#deleteMembers(roomNid);
  }

  /** Forgets all rooms. */
  clear(): void {
    this.#rooms.clear();
    this.#members.clear();
    this.#membersBytes = 0;
  }

  #deleteMembers(roomNid: number): void {
    this.#membersBytes -= this.#members.get(roomNid)?.bytes ?? 0;
    this.#members.delete(roomNid);
  }
}
