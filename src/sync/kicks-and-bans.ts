import type { Cache, CacheRegistry } from '../kernel/caches/index.ts';
import type { RoomReader, UserRoom } from '../room-engine/index.ts';
import { RoomView } from '../rooms/index.ts';

/** Maximum number of cached results. */
const maxRemembered = 10_000;

/** Decides whether users who are not in a room were removed from it by other users. */
export class KicksAndBans {
  readonly #engine: RoomReader;
  /** Whether membership events are removals, by the nid of the event. */
  readonly #removals: Cache<number, boolean>;

  constructor(engine: RoomReader, caches: CacheRegistry) {
    this.#removals = caches.create('removals', { size: maxRemembered });
    this.#engine = engine;
  }

  /**
   * Whether other users have kicked or banned the user from a room that the user had joined. A first sync
   * contains such rooms, so that the user learns why they are missing.
   */
  async wasRemoved(userId: string, { roomId, eventNid }: UserRoom): Promise<boolean> {
    const cached = this.#removals.get(eventNid);
    if (cached !== undefined) return cached;
    const stored = await this.#engine.events.get(eventNid);
    const isRemoval = stored?.event.sender !== userId && (await this.#hasBeenJoined(userId, roomId));
    this.#removals.set(eventNid, isRemoval);
    return isRemoval;
  }

  async #hasBeenJoined(userId: string, roomId: string): Promise<boolean> {
    const head = await this.#engine.heads.get(roomId);
    return head !== undefined && (await RoomView.open(this.#engine, head, userId)).hasBeenJoined;
  }
}
