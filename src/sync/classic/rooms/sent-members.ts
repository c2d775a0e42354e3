import { type Cache, type CacheRegistry, MiB } from '../../../kernel/caches/index.ts';
import type { Recipient } from '../recipient.ts';

/**
 * Maximum number of pairs of a device and a room whose sent members are cached. For other pairs, members are sent
 * again.
 */
const maxPairs = 50_000;

interface SentMember {
  readonly nid: number;
  /** Position of the answer with the event: a client with an older token has not received it. */
  readonly position: number;
}

/** The membership events that a lazy-loading device has been sent in one room. */
export class SentRoomMembers {
  /** The last sent membership event of each user, by user id. */
  readonly #users = new Map<string, SentMember>();

  /** Whether the device has received a membership event. @param since position of the device's token */
  has(userId: string, nid: number, since: number): boolean {
    const sent = this.#users.get(userId);
    return sent?.nid === nid && sent.position <= since;
  }

  /** Records that a membership event is sent. @param position of the answer that contains it */
  add(userId: string, nid: number, position: number): void {
    this.#users.set(userId, { nid, position });
  }

  /** Number of members that were sent. */
  get size(): number {
    return this.#users.size;
  }

  /** Forgets all members, so that they are sent again. */
  clear(): void {
    this.#users.clear();
  }
}

/** The membership events that lazy-loading devices have been sent. */
export class SentMembers {
  readonly #rooms: Cache<string, SentRoomMembers>;

  constructor(caches: CacheRegistry) {
    this.#rooms = caches.create('sent_members', {
      size: maxPairs,
      maxBytes: 8 * MiB,
      sizeOf: ({ size }) => 200 + 120 * size,
    });
  }

  /** Returns the members that a device was sent in a room. */
  of(device: Pick<Recipient, 'userId' | 'deviceId'>, roomId: string): SentRoomMembers {
    const key = keyOf(device, roomId);
    let members = this.#rooms.get(key);
    if (members) {
      // Members may have been added since the last call.
      this.#rooms.remeasure(key);
    } else {
      members = new SentRoomMembers();
      this.#rooms.set(key, members);
    }
    return members;
  }
}

/** Returns a unique key: user ids contain no space, and the device id comes last, because it may be any text. */
const keyOf = ({ userId, deviceId }: Pick<Recipient, 'userId' | 'deviceId'>, roomId: string) =>
  `${userId} ${roomId.length} ${roomId}${deviceId === undefined ? '' : ` ${deviceId}`}`;
