/** Rooms: the list, one room, blocking and deleting. */
import type { Page, PageRequest } from './lists.ts';
import { type Api, path } from './request.ts';

export interface ListedRoom {
  readonly room_id: string;
  readonly name: string | null;
  readonly canonical_alias: string | null;
  readonly joined_members: number;
  readonly joined_local_members: number;
  readonly version: string | null;
  readonly creator: string | null;
  readonly encryption: string | null;
  readonly federatable: boolean;
  readonly public: boolean;
  readonly join_rules: string | null;
  readonly guest_access: string | null;
  readonly history_visibility: string | null;
  readonly state_events: number;
  readonly room_type: string | null;
}

export interface RoomDetails extends ListedRoom {
  readonly topic: string | null;
  readonly joined_local_devices: number;
  readonly forgotten: boolean;
  readonly tombstoned: boolean;
}

export interface RoomFilter {
  readonly search_term?: string | undefined;
  /** Whether the rooms are in the public directory; absent: all rooms. */
  readonly public_rooms?: boolean | undefined;
  readonly empty_rooms?: boolean | undefined;
}

export interface Deletion {
  readonly delete_id: string;
  readonly status: 'scheduled' | 'active' | 'complete' | 'failed';
  readonly error?: string;
  readonly shutdown_room: { readonly kicked_users?: readonly string[] } | null;
}

export interface DeletionRequest {
  readonly block: boolean;
  readonly purge: boolean;
}

export async function listRooms(
  api: Api,
  filter: RoomFilter,
  page: PageRequest,
  signal: AbortSignal,
): Promise<Page<ListedRoom>> {
  const answer = await api.admin<{ rooms: ListedRoom[]; total_rooms: number; next_batch?: number }>(
    'GET',
    '/v1/rooms',
    { query: { ...filter, ...page }, signal },
  );
  return { rows: answer.rooms, total: answer.total_rooms, next: answer.next_batch };
}

export const roomDetails = (api: Api, roomId: string, signal: AbortSignal): Promise<RoomDetails> =>
  api.admin('GET', path`/v1/rooms/${roomId}`, { signal });

export async function roomMembers(api: Api, roomId: string, signal: AbortSignal): Promise<readonly string[]> {
  return (await api.admin<{ members: string[] }>('GET', path`/v1/rooms/${roomId}/members`, { signal }))
    .members;
}

export async function isBlocked(api: Api, roomId: string, signal: AbortSignal): Promise<boolean> {
  return (await api.admin<{ block: boolean }>('GET', path`/v1/rooms/${roomId}/block`, { signal })).block;
}

export const setBlocked = (api: Api, roomId: string, block: boolean): Promise<unknown> =>
  api.admin('PUT', path`/v1/rooms/${roomId}/block`, { body: { block } });

/** Starts a job that deletes a room. @returns the id of the deletion */
export async function deleteRoom(api: Api, roomId: string, request: DeletionRequest): Promise<string> {
  const answer = await api.admin<{ delete_id: string }>('DELETE', path`/v2/rooms/${roomId}`, {
    body: request,
  });
  return answer.delete_id;
}

/** Returns the deletions of a room, the oldest first; most rooms have none. */
export async function deletionsOf(
  api: Api,
  roomId: string,
  signal: AbortSignal,
): Promise<readonly Deletion[]> {
  const query = { room_id: roomId };
  return (await api.admin<{ results: Deletion[] }>('GET', '/v1/room_deletions', { query, signal })).results;
}

export const makeRoomAdministrator = (api: Api, roomId: string, userId: string): Promise<unknown> =>
  api.admin('POST', path`/v1/rooms/${roomId}/make_room_admin`, { body: { user_id: userId } });

export const joinRoom = (api: Api, roomId: string, userId: string): Promise<unknown> =>
  api.admin('POST', path`/v1/join/${roomId}`, { body: { user_id: userId } });

/**
 * Starts a job that deletes the messages which were sent to a room before a time.
 * @param before milliseconds since the epoch
 * @param local whether messages of local users are deleted, too
 */
export const purgeHistory = (api: Api, roomId: string, before: number, local: boolean): Promise<unknown> =>
  api.admin('POST', path`/v1/purge_history/${roomId}`, {
    body: { purge_up_to_ts: before, delete_local_events: local },
  });
