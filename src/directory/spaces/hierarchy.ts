import { forbidden, invalidParam, type JsonObject } from '../../protocol/index.ts';
import type { RoomEngine } from '../../rooms/index.ts';
import { describeRoom, type RoomDescription } from '../room-stats/room-description.ts';
import { childrenOf, type SpaceChild } from './children.ts';
import { maySeeSummary } from './room-access.ts';
import { summaryJson } from './summary-json.ts';

export interface HierarchyRequest {
  readonly suggestedOnly: boolean;
  readonly limit?: number | undefined;
  readonly maxDepth?: number | undefined;
  readonly from?: string | undefined;
}

/** A room of the tree with its children. */
interface TreeRoom {
  readonly room: RoomDescription;
  readonly children: readonly SpaceChild[];
}

/** Rooms in one answer, levels of a tree, and rooms of a tree that are looked at, at most. */
const [mostRooms, mostLevels, mostVisited] = [50, 50, 2_000];

/**
 * Walks the trees of spaces, parents before their children. A page is found by walking from the root again, past the
 * rooms of the pages before it: nothing is kept between requests, and a tree is bounded.
 * Source: client-server API, `GET /rooms/{roomId}/hierarchy`.
 */
export class SpaceHierarchy {
  readonly #engine: RoomEngine;

  constructor(engine: RoomEngine) {
    this.#engine = engine;
  }

  /** @throws MatrixError M_FORBIDDEN when the user may not see the root, M_INVALID_PARAM */
  async page(userId: string, roomId: string, request: HierarchyRequest): Promise<JsonObject> {
    const { suggestedOnly, limit = mostRooms, maxDepth = mostLevels } = request;
    if (limit < 1) throw invalidParam('limit must be above 0');
    if (maxDepth < 0) throw invalidParam('max_depth must not be negative');
    const depth = Math.min(maxDepth, mostLevels);
    const skip = request.from === undefined ? 0 : decodeFrom(request.from, suggestedOnly, depth);
    const wanted = Math.min(limit, mostRooms);
    const rooms: TreeRoom[] = [];
    let seen = 0;
    for await (const room of this.#walk(userId, roomId, suggestedOnly, depth)) {
      if (seen++ >= skip) rooms.push(room);
      if (rooms.length > wanted) break;
    }
    if (seen === 0) throw forbidden('You are not allowed to view this room');
    const isLast = rooms.length <= wanted;
    return {
      rooms: rooms.slice(0, wanted).map(({ room, children }) => ({
        ...summaryJson(room),
        children_state: children.map(({ event }) => event),
      })),
      ...(isLast ? undefined : { next_batch: encodeFrom(suggestedOnly, depth, skip + wanted) }),
    };
  }

  /** The rooms of the tree that the user may see, each once, depth first. */
  async *#walk(
    userId: string,
    rootId: string,
    suggestedOnly: boolean,
    maxDepth: number,
  ): AsyncGenerator<TreeRoom> {
    const visited = new Set<string>();
    const stack = [{ roomId: rootId, depth: 0 }];
    for (let next = stack.pop(); next && visited.size < mostVisited; next = stack.pop()) {
      if (visited.has(next.roomId)) continue;
      visited.add(next.roomId);
      const found = await this.#room(userId, next.roomId, suggestedOnly);
      if (!found) continue;
      yield found;
      if (next.depth >= maxDepth || stack.length > mostVisited) continue;
      for (const { roomId } of found.children.toReversed()) stack.push({ roomId, depth: next.depth + 1 });
    }
  }

  async #room(userId: string, roomId: string, suggestedOnly: boolean): Promise<TreeRoom | undefined> {
    const head = await this.#engine.heads.get(roomId);
    const room = head && (await describeRoom(this.#engine, head));
    if (!room || !(await maySeeSummary(this.#engine, head, room, userId))) return undefined;
    const children = room.roomType === 'm.space' ? await childrenOf(this.#engine, head) : [];
    return { room, children: children.filter(({ suggested }) => suggested || !suggestedOnly) };
  }
}

/** Where a walk goes on, together with what may not change on the way. */
const encodeFrom = (suggestedOnly: boolean, maxDepth: number, skip: number): string =>
  `h${suggestedOnly ? 1 : 0}_${maxDepth}_${skip}`;

/** @throws MatrixError M_INVALID_PARAM */
function decodeFrom(token: string, suggestedOnly: boolean, maxDepth: number): number {
  const skip = /^h[01]_\d{1,2}_(\d{1,5})$/.exec(token)?.[1];
  if (skip === undefined) throw invalidParam('This is not a token of a hierarchy');
  if (encodeFrom(suggestedOnly, maxDepth, Number(skip)) !== token) {
    throw invalidParam('suggested_only and max_depth cannot change on paginated requests');
  }
  return Number(skip);
}
