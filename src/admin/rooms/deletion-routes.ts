import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { notFound } from '../../protocol/index.ts';
import type { BlockedRooms, RoomDeletion, RoomDeletionOrder, RoomDeletionStatus } from '../../rooms/index.ts';
import type { LocalUsers } from '../users/local-user.ts';
import { checkRoomId, type KnownRooms } from './known-rooms.ts';

const paths = {
  v1: '/_server/admin/v1/rooms/:roomId',
  v2: '/_server/admin/v2/rooms/:roomId',
} as const;

const defaultName = 'Content Violation Notification';
const defaultMessage =
  'Sharing illegal content on this server is not permitted and rooms in violation will be blocked.';

const body = Type.Object({
  new_room_user_id: Type.Optional(Type.String()),
  room_name: Type.Optional(Type.String()),
  message: Type.Optional(Type.String()),
  block: Type.Optional(Type.Boolean()),
  purge: Type.Optional(Type.Boolean()),
  force_purge: Type.Optional(Type.Boolean()),
});

interface DeletionBody {
  readonly new_room_user_id?: string;
  readonly room_name?: string;
  readonly message?: string;
  readonly block?: boolean;
  readonly purge?: boolean;
  readonly force_purge?: boolean;
}

export interface DeletionRoutesDeps {
  readonly deletion: RoomDeletion;
  readonly blocked: BlockedRooms;
  readonly rooms: KnownRooms;
  readonly users: LocalUsers;
}

/** Deletes rooms. Version 1 responds after the deletion, version 2 responds at once and deletes in a job. */
export function deletionRoutes(deps: DeletionRoutesDeps): Route[] {
  const { deletion, blocked, rooms } = deps;
  return [
    route({ method: 'DELETE', path: paths.v1, auth: 'admin', body }, async (request) => {
      const { roomId } = request.params;
      checkRoomId(roomId);
      if (request.body.block && (await rooms.find(roomId)) === undefined) {
        await blocked.block(roomId, request.requester.userId);
        return nothingDone;
      }
      const order = await orderOf(deps, request.requester.userId, roomId, request.body);
      return deletion.perform(await rooms.get(roomId), order);
    }),
    route(
      {
        method: 'DELETE',
        path: paths.v2,
        auth: 'admin',
        body,
        needsBody: true,
        response: Type.Object({ delete_id: Type.String() }),
      },
      async ({ params: { roomId }, requester, body: given }) => ({
        delete_id: await deletion.schedule(
          await rooms.get(roomId),
          await orderOf(deps, requester.userId, roomId, given),
        ),
      }),
    ),
    ...statusRoutes(deletion),
  ];
}

function statusRoutes(deletion: RoomDeletion): Route[] {
  return [
    route(
      {
        method: 'GET',
        path: `${paths.v2}/delete_status`,
        auth: 'admin',
        response: Type.Object({ results: Type.Array(Type.Object({ delete_id: Type.String() })) }),
      },
      async ({ params: { roomId } }) => {
        const found = await deletion.ofRoom(roomId);
        if (found.length === 0) throw notFound('This room has not been deleted');
        return { results: found.map(statusJson) };
      },
    ),
    route(
      {
        method: 'GET',
        path: '/_server/admin/v2/rooms/delete_status/:deleteId',
        auth: 'admin',
        response: Type.Object({ delete_id: Type.String(), status: Type.String() }),
      },
      async ({ params: { deleteId } }) => {
        const found = deleteId.includes('\0') ? undefined : await deletion.status(deleteId);
        if (found === undefined) throw notFound('Unknown delete_id');
        return statusJson(found);
      },
    ),
  ];
}

/**
 * Returns the deletion that a request asks for, and blocks the room if it asks so.
 * @throws MatrixError M_NOT_FOUND, M_INVALID_PARAM
 */
async function orderOf(
  { blocked, rooms, users }: DeletionRoutesDeps,
  administrator: string,
  roomId: string,
  given: DeletionBody,
): Promise<RoomDeletionOrder> {
  checkRoomId(roomId);
  if (given.new_room_user_id !== undefined) users.checkLocal(given.new_room_user_id);
  await rooms.get(roomId);
  if (given.block) await blocked.block(roomId, administrator);
  return {
    roomId,
    newRoomUserId: given.new_room_user_id ?? null,
    newRoomName: given.room_name ?? defaultName,
    message: given.message ?? defaultMessage,
    purge: given.purge ?? true,
    forcePurge: given.force_purge ?? false,
  };
}

const nothingDone = {
  kicked_users: [],
  failed_to_kick_users: [],
  local_aliases: [],
  new_room_id: null,
};

const statusJson = ({ deleteId, roomId, status, error, shutdown }: RoomDeletionStatus) => ({
  delete_id: deleteId,
  room_id: roomId,
  status,
  ...(error !== undefined && { error }),
  shutdown_room: shutdown,
});
