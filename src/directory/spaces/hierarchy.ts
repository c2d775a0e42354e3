import { forbidden, invalidParam, type JsonObject, notFound } from '../../protocol/index.ts';
import type { RoomHead, RoomReader, ServerAcls } from '../../room-engine/index.ts';
import { describeRoom, type RoomDescription } from '../room-stats/room-description.ts';
import { childrenOf, type SpaceChild } from './children.ts';
import type { RemoteRooms, RequestedPage } from './remote-rooms.ts';
import { RemoteWalk } from './remote-walk.ts';
import { maySeeRemote, maySeeSummary, serverMaySee } from './room-access.ts';
import { summaryJson } from './summary-json.ts';

export interface HierarchyRequest {
  readonly suggestedOnly: boolean;
  readonly limit?: number | undefined;
  readonly maxDepth?: number | undefined;
  readonly from?: string | undefined;
  /** For administrators: lists all local rooms, and sends no requests to other servers. */
  readonly seesAllRooms?: boolean;
}

/** A room of the hierarchy with its children. */
interface TreeRoom {
  readonly room: RoomDescription;
  readonly children: readonly SpaceChild[];
}

/** Maximum number of rooms per page. */
const maxRooms = 50;

/** Maximum number of levels below the root. */
const maxLevels = 50;

/** Maximum number of rooms that are visited per request. */
const maxVisited = 2_000;

/**
 * Walks the hierarchies of spaces, parents before their children. Each page walks from the root again, past the rooms
 * of earlier pages, so that no position is stored between requests. Hierarchies are bounded, and so is this repetition.
 * Source: client-server API, `GET /rooms/{roomId}/hierarchy`.
 */
export class SpaceHierarchy {
  readonly #engine: RoomReader;
  readonly #serverAcls: ServerAcls;
  readonly #serverName: string;
  readonly #remote: RemoteRooms;

  constructor(deps: {
    engine: RoomReader;
    serverAcls: ServerAcls;
    serverName: string;
    remote: RemoteRooms;
  }) {
    this.#engine = deps.engine;
    this.#serverAcls = deps.serverAcls;
    this.#serverName = deps.serverName;
    this.#remote = deps.remote;
  }

  /**
   * Returns a page of the hierarchy below a room.
   * @throws MatrixError M_FORBIDDEN when the user may not see the room, M_INVALID_PARAM
   */
  async page(userId: string, roomId: string, request: HierarchyRequest): Promise<JsonObject> {
    const { suggestedOnly, limit = maxRooms, maxDepth = maxLevels } = request;
    if (limit < 1) throw invalidParam('limit must be above 0');
    if (maxDepth < 0) throw invalidParam('max_depth must not be negative');
    const depth = Math.min(maxDepth, maxLevels);
    const skip =
      request.from === undefined ? 0 : decodeFrom(request.from, { roomId, suggestedOnly, maxDepth: depth });
    const size = Math.min(limit, maxRooms);
    const rooms: TreeRoom[] = [];
    let seen = 0;
    const isContinued = request.from !== undefined;
    const page = { userId, isContinued, seesAllRooms: request.seesAllRooms ?? false };
    for await (const room of this.#walk(page, roomId, suggestedOnly, depth)) {
      if (seen++ >= skip) rooms.push(room);
      if (rooms.length > size) break;
    }
    if (seen === 0) throw forbidden('You are not allowed to view this room');
    const isLast = rooms.length <= size;
    return {
      rooms: rooms.slice(0, size).map(treeRoomJson),
      ...(isLast
        ? undefined
        : { next_batch: encodeFrom({ roomId, suggestedOnly, maxDepth: depth }, skip + size) }),
    };
  }

  /**
   * Returns a room and its children, as far as users of a remote server may see them.
   * Source: server-server API, `GET /hierarchy/{roomId}`.
   * @throws MatrixError M_NOT_FOUND when these users may not see the room itself
   */
  async forServer(serverName: string, roomId: string, suggestedOnly: boolean): Promise<JsonObject> {
    const root = await this.#local(roomId);
    if (!root || !(await this.#mayServerSee(root, serverName))) {
      throw notFound('Room not found');
    }
    const children = await this.#children(root, suggestedOnly);
    const summaries: JsonObject[] = [];
    const inaccessible: string[] = [];
    for (const child of children.slice(0, maxRooms)) {
      const found = await this.#local(child.roomId);
      if (!found) continue;
      if (await this.#mayServerSee(found, serverName)) {
        summaries.push(summaryJson(found.room));
      } else inaccessible.push(child.roomId);
    }
    return {
      room: treeRoomJson({ room: root.room, children }),
      children: summaries,
      inaccessible_children: inaccessible,
    };
  }

  /** Yields the rooms that the user may see, each once, depth first. */
  async *#walk(
    page: RequestedPage & { readonly seesAllRooms: boolean },
    rootId: string,
    suggestedOnly: boolean,
    maxDepth: number,
  ): AsyncGenerator<TreeRoom> {
    const { userId } = page;
    const remote = page.seesAllRooms ? undefined : new RemoteWalk(this.#remote, suggestedOnly, page);
    /**
     * The depths of visited rooms. A room is visited again by a shorter path, because more levels below it are then
     * within the maximum depth. Rooms without children have 0 here, so that they are not visited again.
     */
    const depths = new Map<string, number>();
    const stack: QueuedRoom[] = [{ roomId: rootId, depth: 0, via: [] }];
    let visited = 0;
    for (let next = stack.pop(); next && visited < maxVisited; next = stack.pop()) {
      const { roomId, depth } = next;
      const before = depths.get(roomId);
      if (before !== undefined && before <= depth) continue;
      visited++;
      const found = await this.#room(userId, next, suggestedOnly, remote);
      depths.set(roomId, found && found.children.length > 0 ? depth : 0);
      if (!found) continue;
      if (before === undefined) yield found;
      if (depth >= maxDepth || stack.length > maxVisited) continue;
      for (const child of found.children.toReversed()) {
        stack.push({ roomId: child.roomId, via: child.via, depth: depth + 1 });
      }
    }
  }

  /** @param remote absent: all local rooms are visible, and remote rooms are left out */
  async #room(
    userId: string,
    { roomId, via }: QueuedRoom,
    suggestedOnly: boolean,
    remote: RemoteWalk | undefined,
  ): Promise<TreeRoom | undefined> {
    const local = await this.#local(roomId);
    if (local) {
      const maySee = !remote || (await maySeeSummary(this.#engine, local.head, local.room, userId));
      if (!maySee) return undefined;
      return { room: local.room, children: await this.#children(local, suggestedOnly) };
    }
    const found = await remote?.room(roomId, via);
    if (!found || !(await maySeeRemote(this.#engine, found.room, userId))) return undefined;
    return { room: found.room, children: wanted(found.children, suggestedOnly) };
  }

  /** Whether a remote server may see a room; server ACLs apply as well. */
  async #mayServerSee({ head, room }: LocalRoom, serverName: string): Promise<boolean> {
    if (!(await this.#serverAcls.allows(head, serverName))) return false;
    return serverMaySee(this.#engine, head, room, serverName);
  }

  /** Returns a room if it has local members, because the stored state of other rooms may be outdated. */
  async #local(roomId: string): Promise<LocalRoom | undefined> {
    const head = await this.#engine.heads.get(roomId);
    if (!head?.servers.has(this.#serverName)) return undefined;
    return { head, room: await describeRoom(this.#engine, head) };
  }

  async #children({ head, room }: LocalRoom, suggestedOnly: boolean): Promise<readonly SpaceChild[]> {
    return room.roomType === 'm.space' ? wanted(await childrenOf(this.#engine, head), suggestedOnly) : [];
  }
}

interface LocalRoom {
  readonly head: RoomHead;
  readonly room: RoomDescription;
}

/** A room that is still to be visited. */
interface QueuedRoom {
  readonly roomId: string;
  readonly depth: number;
  readonly via: readonly string[];
}

const wanted = (children: readonly SpaceChild[], suggestedOnly: boolean): readonly SpaceChild[] =>
  suggestedOnly ? children.filter(({ suggested }) => suggested) : children;

const treeRoomJson = ({ room, children }: TreeRoom): JsonObject => ({
  ...summaryJson(room),
  children_state: children.map(({ event }) => event),
});

/** The parameters of a walk, which must not change between its pages. */
interface Walk {
  readonly roomId: string;
  readonly suggestedOnly: boolean;
  readonly maxDepth: number;
}

/** Encodes a position of a walk, together with its parameters. */
const encodeFrom = ({ roomId, suggestedOnly, maxDepth }: Walk, skip: number): string =>
  `h${suggestedOnly ? 1 : 0}_${maxDepth}_${skip}_${Buffer.from(roomId).toString('base64url')}`;

/** @throws MatrixError M_INVALID_PARAM */
function decodeFrom(token: string, walk: Walk): number {
  const [, skip, room = ''] = /^h[01]_\d{1,2}_(\d{1,5})_([\w-]+)$/.exec(token) ?? [];
  if (skip === undefined || Buffer.from(room, 'base64url').toString() !== walk.roomId)
    throw invalidParam('Invalid pagination token');
  if (encodeFrom(walk, Number(skip)) !== token)
    throw invalidParam('suggested_only and max_depth cannot change on paginated requests');
  return Number(skip);
}
