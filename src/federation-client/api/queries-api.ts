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

/**
 * Maximum bytes of a response, by what it contains: a profile (its fields have at most 64 KiB); the room and the
 * servers of an alias; a list of rooms.
 */
const maxBody = { profile: 128 * 1024, alias: 256 * 1024, rooms: 8 * 1024 * 1024 } as const;

/** Maximum number of values in a profile, and in a list of rooms, where a room has about 15 values. */
const maxValues = { profile: 50_000, rooms: 200_000 } as const;

/** Bounds of a response with a list of rooms. */
const listBounds = { maxBody: maxBody.rooms, maxValues: maxValues.rooms } as const;

/** Maximum number of servers in the response for an alias. */
const maxServersInResponse = 10_000;

/** Maximum number of rooms in a room list or a space. */
const maxRooms = 10_000;

/** Maximum number of servers that `alias` returns. */
const maxServers = 50;

/** The room of an alias. */
export interface AliasResponse {
  readonly roomId: string;
  /** Servers that are likely to be in the room. */
  readonly servers: readonly string[];
}

/** Parameters of a room list. Source: server-server API, `POST /publicRooms`. */
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

/** A page of a room list. The entries are unchecked objects. */
export interface PublicRoomsResponse {
  readonly rooms: readonly JsonObject[];
  readonly nextBatch: string | undefined;
  readonly previousBatch: string | undefined;
  /** Estimated number of rooms in the whole list. */
  readonly estimate: number | undefined;
}

/**
 * Requests that a user waits for: profiles, aliases, room lists and spaces. Servers in backoff receive requests for
 * profiles, aliases and room lists now and then, because a backoff may last a week although the server has returned.
 * They receive none for spaces, because one hierarchy may need many servers.
 * Source: server-server API, "Querying for information", "Published Room Directory", "Spaces".
 */
export class QueriesApi {
  readonly #client: FederationClient;

  constructor(client: FederationClient) {
    this.#client = client;
  }

  /**
   * Fetches the whole profile of a user of the server.
   * @throws the errors of `FederationClient.request`, like all methods here
   */
  profile(server: string, userId: string, request?: ApiRequest): Promise<JsonObject> {
    return this.#get(server, '/_proto/federation/v1/query/profile', request, {
      query: { user_id: userId },
      maxBody: maxBody.profile,
      maxValues: maxValues.profile,
      isForUser: true,
    });
  }

  /** Resolves an alias of the server. */
  async alias(server: string, alias: string, request?: ApiRequest): Promise<AliasResponse> {
    const answer = await this.#get(server, '/_proto/federation/v1/query/directory', request, {
      query: { room_alias: alias },
      maxBody: maxBody.alias,
      isForUser: true,
    });
    const roomId = answer['room_id'];
    if (!isRoomId(roomId)) throw new MalformedResponse(server, 'room_id is not a room id');
    const listed = new ResponseShape(server, answer).list('servers', maxServersInResponse);
    const servers = new Set(listed.filter((name) => typeof name === 'string').filter(isServerName));
    return { roomId, servers: [...servers].slice(0, maxServers) };
  }

  /** Fetches a page of the room list that the server publishes. */
  async publicRooms(
    server: string,
    list: PublicRoomsQuery,
    request?: ApiRequest,
  ): Promise<PublicRoomsResponse> {
    const path = '/_proto/federation/v1/publicRooms';
    const { filter, ...parameters } = list;
    const answer =
      filter === undefined
        ? await this.#get(server, path, request, { query: parameters, ...listBounds, isForUser: true })
        : await this.#request(server, request, {
            method: 'POST',
            path,
            body: definedOnly(list),
            ...listBounds,
            isForUser: true,
          });
    return {
      rooms: new ResponseShape(server, answer).list('chunk', maxRooms).filter(isJsonObject),
      nextBatch: textOf(answer['next_batch']),
      previousBatch: textOf(answer['prev_batch']),
      estimate: countOf(answer['total_room_count_estimate']),
    };
  }

  /**
   * Fetches a room and its children as the server sees them. Checks that the response has the object `room` and the
   * lists, and how long the lists are; their entries are unchecked.
   */
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
        ...listBounds,
        retry: 'none',
      },
    );
    const { room } = answer;
    if (!isJsonObject(room)) throw new MalformedResponse(server, 'room is not an object');
    const shape = new ResponseShape(server, answer);
    shape.list('children', maxRooms);
    shape.list('inaccessible_children', maxRooms);
    new ResponseShape(server, room).list('children_state', maxRooms);
    return answer;
  }

  #get(
    server: string,
    path: string,
    request: ApiRequest | undefined,
    parts: RequestParts,
  ): Promise<JsonObject> {
    return this.#request(server, request, { method: 'GET', path, ...parts });
  }

  #request(
    destination: string,
    { signal, timeout, budget }: ApiRequest = {},
    parts: RequestParts & Pick<FederationRequest, 'method' | 'path' | 'body'>,
  ): Promise<JsonObject> {
    return this.#client.request({
      destination,
      ...(signal && { signal }),
      ...(timeout !== undefined && { timeout }),
      ...(budget && { budget }),
      ...parts,
    });
  }
}

type RequestParts = Pick<FederationRequest, 'query' | 'maxBody' | 'maxValues' | 'retry' | 'isForUser'>;

const definedOnly = (list: PublicRoomsQuery): JsonObject =>
  Object.fromEntries(Object.entries(list).filter(([, value]) => value !== undefined));

const textOf = (value: JsonValue | undefined): string | undefined =>
  typeof value === 'string' && value.length <= 4_096 ? value : undefined;

const countOf = (value: JsonValue | undefined): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
