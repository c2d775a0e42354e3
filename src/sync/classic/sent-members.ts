import { LRUCache } from 'lru-cache';
import type { Subject } from './joined-room.ts';

/** Rooms of devices whose told members are remembered; forgetting one only means telling again. */
const roomsInMemory = 50_000;

/** Which membership events the devices that load members lazily have been sent. */
export class SentMembers {
  readonly #rooms = new LRUCache<string, Map<string, number>>({ max: roomsInMemory });

  /** User id to the nid of the membership event, for one device and room. */
  of({ userId, deviceId }: Pick<Subject, 'userId' | 'deviceId'>, roomId: string): Map<string, number> {
    const key = JSON.stringify([userId, deviceId, roomId]);
    let members = this.#rooms.get(key);
    if (!members) {
      members = new Map();
      this.#rooms.set(key, members);
    }
    return members;
  }
}
