import type { RoomDescription } from '../room-stats/room-description.ts';
import type { SpaceChild } from './children.ts';
import type { RemoteRooms } from './remote-rooms.ts';

/** Questions to other servers that one walk asks at most. */
const maxQuestions = 20;

/** What one walk through a tree learns of rooms that this server is not in. */
export class RemoteWalk {
  readonly #rooms: RemoteRooms;
  readonly #suggestedOnly: boolean;
  readonly #summaries = new Map<string, RoomDescription>();
  readonly #inaccessible = new Set<string>();
  #questions = 0;

  constructor(rooms: RemoteRooms, suggestedOnly: boolean) {
    this.#rooms = rooms;
    this.#suggestedOnly = suggestedOnly;
  }

  /** A room with its children; asks nobody about rooms that are known from their parents and have no children. */
  async room(
    roomId: string,
    via: readonly string[],
  ): Promise<{ room: RoomDescription; children: readonly SpaceChild[] } | undefined> {
    if (this.#inaccessible.has(roomId)) return undefined;
    const summary = this.#summaries.get(roomId);
    const known = summary && { room: summary, children: [] };
    if ((summary && summary.roomType !== 'm.space') || this.#questions >= maxQuestions) return known;
    this.#questions++;
    const tree = await this.#rooms.tree(roomId, via, this.#suggestedOnly);
    if (!tree) return known;
    for (const [child, description] of tree.summaries) this.#summaries.set(child, description);
    for (const child of tree.inaccessible) this.#inaccessible.add(child);
    return tree;
  }
}
