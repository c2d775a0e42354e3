import { RecentlyUsed } from '../kernel/caches/index.ts';
import type { RoomReader, UserRoom } from '../room-engine/index.ts';
import { RoomView } from '../rooms/index.ts';

/** How many removals are kept in memory. */
const maxRemembered = 100_000;

/** How users who are not in a room came out of it. */
export class Removals {
  readonly #engine: RoomReader;
  /** The number of the membership event to whether it is a removal. */
  readonly #removals = new RecentlyUsed<number, boolean>({ max: maxRemembered });

  constructor(engine: RoomReader) {
    this.#engine = engine;
  }

  /**
   * Whether others have removed the user from a room that they had been in: kicked or banned them. A client that
   * begins anew shows those rooms, so that its user learns why they are not among the others any more.
   */
  async wasRemoved(userId: string, { roomId, eventNid }: UserRoom): Promise<boolean> {
    const known = this.#removals.get(eventNid);
    if (known !== undefined) return known;
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
