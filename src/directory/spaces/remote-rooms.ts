import { type Cache, type CacheRegistry, MiB, sizeOfJson } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { ResponseBudget } from '../../kernel/outbound/index.ts';
import {
  isJsonObject,
  isRoomAlias,
  isRoomId,
  type JsonObject,
  type JsonValue,
} from '../../protocol/index.ts';
import type { RoomDescription } from '../room-stats/room-description.ts';
import { childrenFromJson, type SpaceChild } from './children.ts';

/** Requests hierarchies from remote servers; implemented in composition. */
export interface RemoteHierarchies {
  /**
   * Requests `GET /hierarchy/{roomId}` from servers. Returns the response of the first server that knows the room;
   * `undefined` when no server knows it.
   * @param budget what the responses of all servers together may cost
   */
  hierarchy(
    roomId: string,
    via: readonly string[],
    suggestedOnly: boolean,
    budget: ResponseBudget,
  ): Promise<JsonObject | undefined>;
}

/** A remote room with its children, from one response. */
export interface RemoteTree {
  readonly room: RoomDescription;
  readonly children: readonly SpaceChild[];
  /** Descriptions of children, by room id. */
  readonly summaries: ReadonlyMap<string, RoomDescription>;
  /** Children that the server reports as inaccessible: they need not be requested. */
  readonly inaccessible: ReadonlySet<string>;
}

/** Maximum number of responses that are cached for the next pages of a hierarchy. */
const maxCached = 500;

/** Milliseconds for which a response is cached. */
const cacheTime = 60_000;

/** Maximum number of servers that receive a request for one room. */
const maxServers = 5;

/** The page of a hierarchy that a user requests. */
export interface RequestedPage {
  readonly userId: string;
  /** Whether it follows another page: it may then use the cached responses of that page. */
  readonly isContinued: boolean;
}

/** How a remote room is requested. */
export interface TreeRequest {
  readonly suggestedOnly?: boolean;
  /** Absent: the response is not cached. */
  readonly page?: RequestedPage;
  /** What the responses may cost; absent: a budget for this room alone. */
  readonly budget?: ResponseBudget;
}

interface CachedTree {
  /** Monotonic milliseconds. */
  readonly until: number;
  readonly tree: RemoteTree | undefined;
  /** Estimated bytes of memory. */
  readonly bytes: number;
}

/** Bounds of all responses together, enough for spaces with about 8,000 rooms. */
const totalOfResponses = { bytes: 16 * MiB, values: 200_000 };

/** Returns the budget of one walk through a hierarchy. */
export const hierarchyBudget = (): ResponseBudget => new ResponseBudget(totalOfResponses);

/**
 * Requests hierarchies of rooms without local members. Responses are reused only for the next pages of the same user:
 * access may change at any time, and other users may see something else.
 */
export class RemoteRooms {
  readonly #remote: RemoteHierarchies | undefined;
  readonly #clock: Clock;
  readonly #answers: Cache<string, CachedTree>;

  constructor(remote: RemoteHierarchies | undefined, clock: Clock, caches: CacheRegistry) {
    this.#answers = caches.create('remote_hierarchies', {
      size: maxCached,
      maxBytes: 4 * MiB,
      sizeOf: ({ bytes }) => bytes,
      isExpired: ({ until }) => until <= clock.monotonic(),
    });
    this.#remote = remote;
    this.#clock = clock;
  }

  /** Returns a remote room with its children; `undefined` without a server to ask or a valid response about the room. */
  async tree(
    roomId: string,
    via: readonly string[],
    { suggestedOnly = false, page, budget = hierarchyBudget() }: TreeRequest = {},
  ): Promise<RemoteTree | undefined> {
    if (!this.#remote || !isRoomId(roomId) || via.length === 0) return undefined;
    const key = JSON.stringify([page?.userId, suggestedOnly, roomId]);
    const known = page?.isContinued ? this.#answers.get(key) : undefined;
    if (known) return known.tree;
    const answer = await this.#remote.hierarchy(roomId, via.slice(0, maxServers), suggestedOnly, budget);
    const tree = answer && treeFromJson(roomId, answer);
    // The tree shares the strings and contents of the response, so its size follows from that of the response.
    const bytes = tree ? 2 * sizeOfJson(answer) : 0;
    if (page) this.#answers.set(key, { until: this.#clock.monotonic() + cacheTime, tree, bytes });
    return tree;
  }
}

/** Reads a response to `GET /hierarchy/{roomId}` of the server-server API. Malformed values count as absent. */
function treeFromJson(roomId: string, answer: JsonObject): RemoteTree | undefined {
  const room = isJsonObject(answer['room']) ? descriptionFromJson(answer['room']) : undefined;
  if (!room || room.roomId !== roomId) return undefined;
  const summaries = new Map<string, RoomDescription>();
  for (const json of listOf(answer['children']).filter(isJsonObject)) {
    const child = descriptionFromJson(json);
    if (child) summaries.set(child.roomId, child);
  }
  const events = isJsonObject(answer['room']) ? listOf(answer['room']['children_state']) : [];
  return {
    room,
    children: room.roomType === 'm.space' ? childrenFromJson(events) : [],
    summaries,
    inaccessible: new Set(listOf(answer['inaccessible_children']).filter(isRoomId)),
  };
}

function descriptionFromJson(json: JsonObject): RoomDescription | undefined {
  const roomId = json['room_id'];
  const members = json['num_joined_members'];
  if (!isRoomId(roomId)) return undefined;
  const alias = json['canonical_alias'];
  return {
    roomId,
    name: textOf(json['name']),
    topic: textOf(json['topic']),
    canonicalAlias: isRoomAlias(alias) ? alias : undefined,
    avatarUrl: textOf(json['avatar_url']),
    joinRule: textOf(json['join_rule']) ?? 'public',
    allowedRoomIds: listOf(json['allowed_room_ids']).filter(isRoomId),
    guestCanJoin: json['guest_can_join'] === true,
    worldReadable: json['world_readable'] === true,
    roomType: textOf(json['room_type']),
    encryption: textOf(json['encryption']),
    roomVersion: textOf(json['room_version']),
    joinedMembers: typeof members === 'number' && Number.isSafeInteger(members) ? Math.max(0, members) : 0,
  };
}

const listOf = (value: JsonValue | undefined): readonly JsonValue[] => (Array.isArray(value) ? value : []);

const textOf = (value: JsonValue | undefined): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
