import type { RoomDescription } from '../room-stats/room-description.ts';
import type { SpaceChild } from './children.ts';
import { hierarchyBudget, type RemoteRooms, type RequestedPage } from './remote-rooms.ts';

/** Maximum number of requests to remote servers per walk. */
const maxRequests = 20;

/** Reads remote rooms for one walk through a hierarchy. */
export class RemoteWalk {
  readonly #rooms: RemoteRooms;
  readonly #suggestedOnly: boolean;
  readonly #page: RequestedPage;
  readonly #budget = hierarchyBudget();
  readonly #summaries = new Map<string, RoomDescription>();
  readonly #inaccessible = new Set<string>();
  #requests = 0;

  constructor(rooms: RemoteRooms, suggestedOnly: boolean, page: RequestedPage) {
    this.#page = page;
    this.#rooms = rooms;
    this.#suggestedOnly = suggestedOnly;
  }

  /**
   * Returns a room with its children; `undefined` when no server shows the room. Sends no request for a room that an
   * earlier response has described, unless the room is a space. After `maxRequests` requests, sends none: a described
   * room is then returned without children.
   */
  async room(
    roomId: string,
    via: readonly string[],
  ): Promise<{ room: RoomDescription; children: readonly SpaceChild[] } | undefined> {
    if (this.#inaccessible.has(roomId)) return undefined;
    const summary = this.#summaries.get(roomId);
    const described = summary && { room: summary, children: [] };
    if ((summary && summary.roomType !== 'm.space') || this.#requests >= maxRequests) return described;
    this.#requests++;
    const request = { suggestedOnly: this.#suggestedOnly, page: this.#page, budget: this.#budget };
    const tree = await this.#rooms.tree(roomId, via, request);
    if (!tree) return described;
    for (const [child, description] of tree.summaries) this.#summaries.set(child, description);
    for (const child of tree.inaccessible) this.#inaccessible.add(child);
    return tree;
  }
}
