import type { ListRequest } from '../../directory/index.ts';
import { errorForClient, type QueriesApi } from '../../federation-client/index.ts';
import { isRoomAlias, isRoomId, type JsonObject, type JsonValue } from '../../protocol/index.ts';

/** Number of rooms on a page when the request sets no limit. */
const defaultLimit = 100;

/** Maximum number of rooms on a page. */
const maxRooms = 500;

/** Requests public room lists of other servers. */
export class RemoteRoomLists {
  readonly #queries: QueriesApi;

  constructor(queries: QueriesApi) {
    this.#queries = queries;
  }

  /**
   * Returns a page of another server's list, without malformed rooms and fields.
   * @throws MatrixError M_FORBIDDEN when `federation_domain_whitelist` excludes the server; the error of the server when
   * it refuses its list; 502 when it cannot be reached or sends an invalid response
   */
  async list(serverName: string, request: ListRequest): Promise<JsonObject> {
    const limit = Math.min(request.limit && request.limit > 0 ? request.limit : defaultLimit, maxRooms);
    try {
      const page = await this.#queries.publicRooms(serverName, { ...request, limit });
      return {
        chunk: page.rooms.map(listedRoom).filter((room) => room !== undefined),
        ...(page.nextBatch === undefined ? undefined : { next_batch: page.nextBatch }),
        ...(page.previousBatch === undefined ? undefined : { prev_batch: page.previousBatch }),
        ...(page.estimate === undefined ? undefined : { total_room_count_estimate: page.estimate }),
      };
    } catch (error) {
      throw errorForClient(error);
    }
  }
}

/** Returns an entry of a list without malformed fields. Source: client-server API, "PublishedRoomsChunk". */
function listedRoom(entry: JsonObject): JsonObject | undefined {
  const { room_id: roomId, num_joined_members: members, canonical_alias: alias } = entry;
  if (!isRoomId(roomId)) return undefined;
  return {
    room_id: roomId,
    ...texts(entry, ['name', 'topic', 'room_type']),
    ...(isRoomAlias(alias) ? { canonical_alias: alias } : undefined),
    ...(isMediaUri(entry['avatar_url']) ? { avatar_url: entry['avatar_url'] } : undefined),
    num_joined_members: Number.isSafeInteger(members) ? Math.max(0, members as number) : 0,
    world_readable: entry['world_readable'] === true,
    guest_can_join: entry['guest_can_join'] === true,
    join_rule: typeof entry['join_rule'] === 'string' ? entry['join_rule'] : 'public',
  };
}

const texts = (entry: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(
    names.map((name) => [name, entry[name]!]).filter(([, value]) => typeof value === 'string'),
  );

const isMediaUri = (value: JsonValue | undefined): value is string =>
  typeof value === 'string' && value.startsWith('mxc://');
