/** Requests about other servers: whether they can be reached, and how much is pending for them. */
import { nextOf, type Page, type PageRequest } from './lists.ts';
import { type Api, path } from './request.ts';

/**
 * Another server. Fields with `_ts` are milliseconds since the epoch, and 0 or `null` while the server can be reached;
 * `retry_interval` is in milliseconds.
 */
export interface Destination {
  readonly destination: string;
  readonly retry_last_ts: number;
  readonly retry_interval: number;
  readonly failure_ts: number | null;
  /** Position of the newest event that the server has received; `null`: none. */
  readonly last_successful_stream_ordering: number | null;
}

export interface DestinationDetails extends Destination {
  /** Number of rooms whose newest events the server has not received. */
  readonly pending_rooms: number;
  readonly pending_edus: number;
}

export interface SharedRoom {
  readonly room_id: string;
  /** Position of the room's newest event that the server has received. */
  readonly stream_ordering: number;
}

/** @param search a part of the names of the servers */
export async function listDestinations(
  api: Api,
  search: string,
  page: PageRequest,
  signal: AbortSignal,
): Promise<Page<Destination>> {
  const answer = await api.admin<{ destinations: Destination[]; total: number; next_token?: string }>(
    'GET',
    '/v1/federation/destinations',
    { query: { ...page, destination: search }, signal },
  );
  return { rows: answer.destinations, total: answer.total, next: nextOf(answer.next_token) };
}

export const destinationDetails = (
  api: Api,
  name: string,
  signal: AbortSignal,
): Promise<DestinationDetails> => api.admin('GET', path`/v1/federation/destinations/${name}`, { signal });

export async function sharedRooms(
  api: Api,
  name: string,
  page: PageRequest,
  signal: AbortSignal,
): Promise<Page<SharedRoom>> {
  const target = path`/v1/federation/destinations/${name}/rooms`;
  const { from, limit, dir } = page;
  const answer = await api.admin<{ rooms: SharedRoom[]; total: number; next_token?: string }>('GET', target, {
    query: { from, limit, dir },
    signal,
  });
  return { rows: answer.rooms, total: answer.total, next: nextOf(answer.next_token) };
}

/** Ends the backoff of a server: waiting requests are sent at once, and new ones without a wait. */
export const resetConnection = (api: Api, name: string): Promise<unknown> =>
  api.admin('POST', path`/v1/federation/destinations/${name}/reset_connection`, { body: {} });
