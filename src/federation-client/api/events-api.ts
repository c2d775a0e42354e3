import type { JsonObject, JsonValue } from '../../protocol/index.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { type FederationRequest, federationPath } from '../requests/request.ts';
import type { ApiRequest } from './api-request.ts';
import { ResponseShape } from './response-shape.ts';

/**
 * Maximum bytes of a response, by what it contains: one event (with its `unsigned`); a page of events or an auth
 * chain; event ids; the whole state of a room.
 */
const maxBody = {
  event: 1024 * 1024,
  page: 16 * 1024 * 1024,
  ids: 32 * 1024 * 1024,
  state: 64 * 1024 * 1024,
} as const;

/** Maximum entries of a list in a response. Public rooms have up to some hundred thousand members. */
const maxEntries = 500_000;

/**
 * Requests for events and room state. The returned events are unchecked, and are possibly not the requested events.
 * No request is retried, because the same request can usually be sent to other servers.
 * Source: server-server API, "Retrieving events", "Backfilling and retrieving missing events", "Retrieving event
 * authorisation information".
 */
export class EventsApi {
  readonly #client: FederationClient;

  constructor(client: FederationClient) {
    this.#client = client;
  }

  /**
   * Fetches one event.
   * @throws the errors of `FederationClient.request`, like all methods here; MalformedResponse unless the
   * response contains exactly one event
   */
  async event(server: string, eventId: string, request?: ApiRequest): Promise<JsonValue> {
    const path = federationPath`/_proto/federation/v1/event/${eventId}`;
    const answer = await this.#get(server, path, request, { maxBody: maxBody.event });
    return answer.only('pdus');
  }

  /** Fetches at most `limit` events before `latest` and after `earliest`. */
  async missingEvents(
    server: string,
    roomId: string,
    gap: {
      readonly earliest: readonly string[];
      readonly latest: readonly string[];
      readonly limit: number;
      readonly minDepth: number;
    },
    request?: ApiRequest,
  ): Promise<readonly JsonValue[]> {
    const answer = await this.#request(server, request, {
      method: 'POST',
      path: federationPath`/_proto/federation/v1/get_missing_events/${roomId}`,
      body: {
        earliest_events: gap.earliest,
        latest_events: gap.latest,
        limit: gap.limit,
        min_depth: gap.minDepth,
      },
      maxBody: maxBody.page,
    });
    return answer.list('events', maxEntries).slice(0, gap.limit);
  }

  /** Fetches the state before an event, as event ids. */
  async stateIds(server: string, roomId: string, eventId: string, request?: ApiRequest) {
    const path = federationPath`/_proto/federation/v1/state_ids/${roomId}`;
    const query = { event_id: eventId };
    const answer = await this.#get(server, path, request, { query, maxBody: maxBody.ids });
    return {
      state: answer.eventIds('pdu_ids', maxEntries),
      authChain: answer.eventIds('auth_chain_ids', maxEntries),
    };
  }

  /** Fetches the state before an event, as events. */
  async state(server: string, roomId: string, eventId: string, request?: ApiRequest) {
    const path = federationPath`/_proto/federation/v1/state/${roomId}`;
    const query = { event_id: eventId };
    const answer = await this.#get(server, path, request, { query, maxBody: maxBody.state });
    return {
      state: answer.list('pdus', maxEntries),
      authChain: answer.list('auth_chain', maxEntries),
    };
  }

  /** Fetches the auth chain of an event. */
  async eventAuth(
    server: string,
    roomId: string,
    eventId: string,
    request?: ApiRequest,
  ): Promise<readonly JsonValue[]> {
    const path = federationPath`/_proto/federation/v1/event_auth/${roomId}/${eventId}`;
    const answer = await this.#get(server, path, request, { maxBody: maxBody.page });
    return answer.list('auth_chain', maxEntries);
  }

  /** Fetches these events and events before them, at most `limit` in total. */
  async backfill(
    server: string,
    roomId: string,
    eventIds: readonly string[],
    limit: number,
    request?: ApiRequest,
  ): Promise<readonly JsonValue[]> {
    const path = federationPath`/_proto/federation/v1/backfill/${roomId}`;
    const answer = await this.#get(server, path, request, {
      query: { v: eventIds, limit },
      maxBody: maxBody.page,
    });
    return answer.list('pdus', maxEntries).slice(0, limit);
  }

  /**
   * Finds the event closest to a time.
   * @param ts milliseconds since the epoch
   */
  async timestampToEvent(
    server: string,
    roomId: string,
    ts: number,
    direction: 'forward' | 'backward',
    request?: ApiRequest,
  ) {
    const path = federationPath`/_proto/federation/v1/timestamp_to_event/${roomId}`;
    const query = { ts, dir: direction === 'forward' ? 'f' : 'b' };
    const answer = await this.#get(server, path, request, { query, maxBody: maxBody.event });
    return { eventId: answer.eventId('event_id'), originServerTs: answer.integer('origin_server_ts') };
  }

  #get(
    server: string,
    path: string,
    request: ApiRequest | undefined,
    parts: RequestParts,
  ): Promise<ResponseShape> {
    return this.#request(server, request, { method: 'GET', path, ...parts });
  }

  async #request(
    destination: string,
    { signal, timeout }: ApiRequest = {},
    parts: RequestParts & Pick<FederationRequest, 'method' | 'path'> & { readonly body?: JsonObject },
  ): Promise<ResponseShape> {
    const answer = await this.#client.request({
      destination,
      retry: 'none',
      ...(signal && { signal }),
      ...(timeout !== undefined && { timeout }),
      ...parts,
    });
    return new ResponseShape(destination, answer);
  }
}

type RequestParts = Pick<FederationRequest, 'query' | 'maxBody'>;
