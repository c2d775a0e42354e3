import type { Database } from '../../kernel/database/index.ts';
import { invalidParam, isServerName, type JsonObject, notFound } from '../../protocol/index.ts';
import type { PublishedRooms } from '../../rooms/index.ts';
import type { RoomStats } from '../room-stats/room-stats.ts';
import type { DirectoryTables } from '../tables.ts';
import { decodePlace, encodePlace, type ListPlace } from './list-token.ts';
import { defaultLimit, placeOf, readPage } from './room-page.ts';
import { countList, type ListedRoom, type ListFilter, readList } from './store.ts';

/**
 * The members of a request for public rooms. A request for the list of a remote server is forwarded with these members.
 */
export interface ListRequest {
  readonly limit?: number | undefined;
  readonly since?: string | undefined;
  readonly filter?: {
    readonly generic_search_term?: string;
    readonly room_types?: readonly (string | null)[];
  };
  readonly include_all_networks?: boolean;
  readonly third_party_instance_id?: string;
}

/** Reads the lists of remote servers; implemented in composition. */
export interface RemoteRoomLists {
  /** @throws MatrixError when the remote server is not asked, gives no valid response, or refuses */
  list(serverName: string, request: ListRequest): Promise<JsonObject>;
}

export interface PublicRoomsDeps {
  readonly database: Database;
  readonly published: PublishedRooms;
  readonly stats: RoomStats;
  readonly serverName: string;
  readonly remote?: RemoteRoomLists | undefined;
}

export interface PublicRoomsOptions {
  readonly enable_room_list_search: boolean;
}

/** Maximum number of rooms on a page. */
const maxRooms = 500;

/** Maximum characters of a search term; the rest is ignored. */
const maxTermLength = 256;

/** The public room list. Source: client-server API, "Published room directory". */
export class PublicRooms {
  readonly #deps: PublicRoomsDeps;
  readonly #options: PublicRoomsOptions;

  constructor(deps: PublicRoomsDeps, options: PublicRoomsOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /**
   * Returns a page of the list of this server or of a remote one.
   * @throws MatrixError M_INVALID_PARAM; M_NOT_FOUND for a remote server when `remote` is absent; the errors of `remote`
   */
  async list(serverName: string | undefined, request: ListRequest): Promise<JsonObject> {
    if (serverName !== undefined && serverName !== this.#deps.serverName) {
      if (!isServerName(serverName)) throw invalidParam('Invalid server name');
      const { remote } = this.#deps;
      if (!remote) throw notFound(`The public rooms of ${serverName} are not available`);
      return remote.list(serverName, request);
    }
    return this.listOwn(request);
  }

  /**
   * Returns a page of this server's list.
   * @param federatableOnly for remote servers: only rooms that federate
   * @throws MatrixError M_INVALID_PARAM
   */
  async listOwn(request: ListRequest, federatableOnly = false): Promise<JsonObject> {
    const limit = limitOf(request);
    const place = request.since === undefined ? undefined : decodePlace(request.since);
    const filter = filterOf(request, federatableOnly);
    if (!this.#options.enable_room_list_search) return { chunk: [], total_room_count_estimate: 0 };
    const { database, published, stats } = this.#deps;
    await stats.caughtUp();
    const scanner = database.scanner<DirectoryTables>();
    const read = (from: ListPlace | undefined, count: number) =>
      readList(scanner, published, filter, { place: from, limit: count });
    const [found, count] = await Promise.all([
      readPage(read, place, limit),
      countList(scanner, published, filter),
    ]);
    return { ...page(found.rooms, place, found.limit), total_room_count_estimate: count };
  }
}

function limitOf({ limit }: ListRequest): number {
  if (limit !== undefined && limit < 0) throw invalidParam('limit must not be negative');
  return Math.min(limit || defaultLimit, maxRooms);
}

function filterOf(request: ListRequest, federatableOnly: boolean): ListFilter {
  const { filter, include_all_networks, third_party_instance_id } = request;
  if (include_all_networks && third_party_instance_id !== undefined) {
    throw invalidParam('third_party_instance_id and include_all_networks must not be combined');
  }
  const term = filter?.generic_search_term?.slice(0, maxTermLength).replaceAll('\0', '').trim();
  return {
    searchTerm: term === '' ? undefined : term,
    roomTypes: filter?.room_types?.map((type) => type?.replaceAll('\0', '') ?? null),
    network: include_all_networks ? undefined : (third_party_instance_id?.replaceAll('\0', '') ?? ''),
    federatableOnly,
  };
}

/** @param found one room more than `limit` when there is another page in this direction */
function page(found: readonly ListedRoom[], place: ListPlace | undefined, limit: number): JsonObject {
  const backward = place?.direction === 'backward';
  const hasMore = found.length > limit;
  const rooms = backward ? found.slice(-limit) : found.slice(0, limit);
  const [first, last] = [rooms[0], rooms.at(-1)];
  const next = backward || hasMore ? last && tokenBeside(last, 'forward') : undefined;
  const previous = (backward ? hasMore : place) ? first && tokenBeside(first, 'backward') : undefined;
  return {
    chunk: rooms.map(listEntry),
    ...(next === undefined ? undefined : { next_batch: next }),
    ...(previous === undefined ? undefined : { prev_batch: previous }),
  };
}

const tokenBeside = (room: ListedRoom, direction: ListPlace['direction']): string =>
  encodePlace(placeOf(room, direction));

/** Returns a room as an entry of the list of public rooms. Source: client-server API, "PublishedRoomsChunk". */
function listEntry(room: ListedRoom): JsonObject {
  return {
    room_id: room.room_id,
    ...(room.name === null ? undefined : { name: room.name }),
    ...(room.topic === null ? undefined : { topic: room.topic }),
    ...(room.canonical_alias === null ? undefined : { canonical_alias: room.canonical_alias }),
    ...(room.avatar_url?.startsWith('mxc://') ? { avatar_url: room.avatar_url } : undefined),
    ...(room.room_type === null ? undefined : { room_type: room.room_type }),
    num_joined_members: room.joined_members,
    world_readable: room.history_visibility === 'world_readable',
    guest_can_join: room.guest_can_join === 1,
    join_rule: room.join_rule,
  };
}
