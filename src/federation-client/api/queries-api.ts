import {
  isJsonObject,
  isRoomId,
  isServerName,
  type JsonObject,
  type JsonValue,
} from '../../protocol/index.ts';
import { MalformedResponse } from '../requests/errors.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { type FederationRequest, federationPath } from '../requests/request.ts';
import type { ApiRequest } from './api-request.ts';
import { ResponseShape } from './response-shape.ts';

/** Bytes of an answer: a profile with at most 64 KiB of fields, an alias with its servers, lists of rooms. */
const maxBody = { profile: 128 * 1024, alias: 256 * 1024, rooms: 8 * 1024 * 1024 } as const;

/** Servers behind an alias, as they come; rooms in a list or under a space. */
const [maxNamed, maxRooms] = [10_000, 10_000];

/** Servers behind an alias that are worth knowing. */
const maxServers = 50;

/** Where an alias leads. */
export interface AliasResponse {
  readonly roomId: string;
  /** Servers that are likely to know the room. */
  readonly servers: readonly string[];
}

/** What of a list of rooms is wanted. Source: server-server API, `POST /publicRooms`. */
export interface PublicRoomsQuery {
  readonly limit?: number | undefined;
  readonly since?: string | undefined;
  readonly filter?: {
    readonly generic_search_term?: string;
    readonly room_types?: readonly (string | null)[];
  };
  readonly include_all_networks?: boolean;
  readonly third_party_instance_id?: string;
}

/** A page of a list of rooms. The entries are objects, nothing else is true of them. */
export interface PublicRoomsResponse {
  readonly rooms: readonly JsonObject[];
  readonly nextBatch: string | undefined;
  readonly previousBatch: string | undefined;
  readonly estimate: number | undefined;
}

/**
 * What other servers are asked on behalf of somebody who waits for it.
 * Source: server-server API, "Querying for information", "Published Room Directory", "Spaces".
 */
export class QueriesApi {
  readonly #client: FederationClient;

  constructor(client: FederationClient) {
    this.#client = client;
  }

  /** The whole profile of a user of that server. @throws as `FederationClient.request` does, also the other methods */
  profile(server: string, userId: string, request?: ApiRequest): Promise<JsonObject> {
    return this.#get(server, '/_proto/federation/v1/query/profile', request, {
      query: { user_id: userId },
      maxBody: maxBody.profile,
    });
  }

  /** The room behind an alias of that server. */
  async alias(server: string, alias: string, request?: ApiRequest): Promise<AliasResponse> {
    const answer = await this.#get(server, '/_proto/federation/v1/query/directory', request, {
      query: { room_alias: alias },
      maxBody: maxBody.alias,
    });
    const roomId = answer['room_id'];
    if (!isRoomId(roomId)) throw new MalformedResponse(server, 'room_id is no id of a room');
    const named = new ResponseShape(server, answer).list('servers', maxNamed);
    const servers = new Set(named.filter((name) => typeof name === 'string').filter(isServerName));
    return { roomId, servers: [...servers].slice(0, maxServers) };
  }

  /** A page of the rooms that the server publishes. */
  async publicRooms(
    server: string,
    list: PublicRoomsQuery,
    request?: ApiRequest,
  ): Promise<PublicRoomsResponse> {
    const path = '/_proto/federation/v1/publicRooms';
    const { filter, ...rest } = list;
    const answer =
      filter === undefined
        ? await this.#get(server, path, request, { query: rest, maxBody: maxBody.rooms })
        : await this.#ask(server, request, {
            method: 'POST',
            path,
            body: definedOnly(list),
            maxBody: maxBody.rooms,
          });
    return {
      rooms: new ResponseShape(server, answer).list('chunk', maxRooms).filter(isJsonObject),
      nextBatch: textOf(answer['next_batch']),
      previousBatch: textOf(answer['prev_batch']),
      estimate: countOf(answer['total_room_count_estimate']),
    };
  }

  /** A room and its children as that server sees them; of the answer only the sizes of its lists are checked. */
  async hierarchy(
    server: string,
    roomId: string,
    suggestedOnly: boolean,
    request?: ApiRequest,
  ): Promise<JsonObject> {
    const answer = await this.#get(
      server,
      federationPath`/_proto/federation/v1/hierarchy/${roomId}`,
      request,
      {
        query: { suggested_only: suggestedOnly },
        maxBody: maxBody.rooms,
        retry: 'none',
      },
    );
    const { room } = answer;
    if (!isJsonObject(room)) throw new MalformedResponse(server, 'room is no object');
    const shape = new ResponseShape(server, answer);
    shape.list('children', maxRooms);
    shape.list('inaccessible_children', maxRooms);
    new ResponseShape(server, room).list('children_state', maxRooms);
    return answer;
  }

  #get(server: string, path: string, request: ApiRequest | undefined, rest: Rest): Promise<JsonObject> {
    return this.#ask(server, request, { method: 'GET', path, ...rest });
  }

  #ask(
    destination: string,
    { signal, timeout }: ApiRequest = {},
    rest: Rest & Pick<FederationRequest, 'method' | 'path' | 'body'>,
  ): Promise<JsonObject> {
    return this.#client.request({
      destination,
      ...(signal && { signal }),
      ...(timeout !== undefined && { timeout }),
      ...rest,
    });
  }
}

type Rest = Pick<FederationRequest, 'query' | 'maxBody' | 'retry'>;

const definedOnly = (list: PublicRoomsQuery): JsonObject =>
  Object.fromEntries(Object.entries(list).filter(([, value]) => value !== undefined));

const textOf = (value: JsonValue | undefined): string | undefined =>
  typeof value === 'string' && value.length <= 4_096 ? value : undefined;

const countOf = (value: JsonValue | undefined): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
