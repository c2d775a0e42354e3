import { RecentlyUsed } from '../../../kernel/caches/index.ts';
import type { Recipient } from '../recipient.ts';

/** Rooms of devices whose told members are remembered; forgetting one only means telling again. */
const roomsInMemory = 50_000;

interface SentMember {
  readonly nid: number;
  /** The token of the answer that said so: who comes with an older one has not got that answer. */
  readonly position: number;
}

/** Which membership events a device that loads members lazily has been sent in one room. */
export class SentRoomMembers {
  readonly #users = new Map<string, SentMember>();

  /** @param since the token with which the device comes */
  has(userId: string, nid: number, since: number): boolean {
    const told = this.#users.get(userId);
    return told?.nid === nid && told.position <= since;
  }

  add(userId: string, nid: number, position: number): void {
    this.#users.set(userId, { nid, position });
  }

  clear(): void {
    this.#users.clear();
  }
}

/** Which membership events the devices that load members lazily have been sent. */
export class SentMembers {
  readonly #rooms = new RecentlyUsed<string, SentRoomMembers>({ max: roomsInMemory });

  of(device: Pick<Recipient, 'userId' | 'deviceId'>, roomId: string): SentRoomMembers {
    const key = keyOf(device, roomId);
    let members = this.#rooms.get(key);
    if (!members) {
      members = new SentRoomMembers();
      this.#rooms.set(key, members);
    }
    return members;
  }
}

/** User ids have no spaces, and the id of the device, which may be any text, comes last. */
const keyOf = ({ userId, deviceId }: Pick<Recipient, 'userId' | 'deviceId'>, roomId: string) =>
  `${userId} ${roomId.length} ${roomId}${deviceId === undefined ? '' : ` ${deviceId}`}`;
