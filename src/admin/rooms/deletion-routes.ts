import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { invalidParam, notFound } from '../../protocol/index.ts';
import type { RoomHead } from '../../room-engine/index.ts';
import type {
  BlockedRooms,
  RoomDeletion,
  RoomDeletionRequest,
  RoomDeletionStatus,
} from '../../rooms/index.ts';
import { nullableText, text } from '../response-fields.ts';
import type { LocalUsers } from '../users/local-user.ts';
import { checkRoomId, type KnownRooms } from './known-rooms.ts';

const paths = {
  v1: '/_server/admin/v1/rooms/:roomId',
  v2: '/_server/admin/v2/rooms/:roomId',
} as const;

/** Name of the new room, and the message in it, when the request has none: the same as in the reference server. */
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

const shutdown = Type.Object({
  kicked_users: Type.Array(text),
  failed_to_kick_users: Type.Array(text),
  local_aliases: Type.Array(text),
  new_room_id: nullableText,
});

const deletionStatus = Type.Object({
  delete_id: text,
  room_id: text,
  status: text,
  error: Type.Optional(text),
  shutdown_room: shutdown,
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
  /** Checks whether an administrator may delete a room; absent: every administrator may. @throws MatrixError */
  readonly checkRoomDeletion?: ((administrator: string, roomId: string) => Promise<void>) | undefined;
}

/**
 * Deletes rooms. Version 1 of the route responds after the deletion. Version 2 responds at once and deletes in a job.
 */
export function deletionRoutes(deps: DeletionRoutesDeps): Route[] {
  const { deletion, blocked, rooms } = deps;
  return [
    route(
      {
        operationId: 'deleteRoom',
        method: 'DELETE',
        path: paths.v1,
        auth: 'admin',
        body,
        response: shutdown,
      },
      async (request) => {
        const { roomId } = request.params;
        checkRoomId(roomId);
        if (request.body.block && (await rooms.find(roomId)) === undefined) {
          await blocked.block(roomId, request.requester.userId);
          return onlyBlocked;
        }
        const { head, deletionRequest } = await prepareDeletion(
          deps,
          request.requester.userId,
          roomId,
          request.body,
        );
        return deletion.perform(head, deletionRequest);
      },
    ),
    route(
      {
        operationId: 'scheduleRoomDeletion',
        method: 'DELETE',
        path: paths.v2,
        auth: 'admin',
        body,
        needsBody: true,
        response: Type.Object({ delete_id: Type.String() }),
      },
      async ({ params: { roomId }, requester, body: given }) => {
        const { head, deletionRequest } = await prepareDeletion(deps, requester.userId, roomId, given);
        return { delete_id: await deletion.schedule(head, deletionRequest) };
      },
    ),
    ...statusRoutes(deletion),
  ];
}

function statusRoutes(deletion: RoomDeletion): Route[] {
  return [
    route(
      {
        operationId: 'listRoomDeletions',
        method: 'GET',
        path: `${paths.v2}/delete_status`,
        auth: 'admin',
        response: Type.Object({ results: Type.Array(deletionStatus) }),
      },
      async ({ params: { roomId } }) => {
        checkRoomId(roomId);
        const found = await deletion.ofRoom(roomId);
        if (found.length === 0) throw notFound('No deletion of this room is known');
        return { results: found.map(statusJson) };
      },
    ),
    route(
      {
        operationId: 'findRoomDeletions',
        method: 'GET',
        path: '/_server/admin/v1/room_deletions',
        auth: 'admin',
        query: Type.Object({ room_id: text }),
        response: Type.Object({ results: Type.Array(deletionStatus) }),
      },
      async ({ query: { room_id: roomId } }) => {
        checkRoomId(roomId);
        return { results: (await deletion.ofRoom(roomId)).map(statusJson) };
      },
    ),
    route(
      {
        operationId: 'getRoomDeletion',
        method: 'GET',
        path: '/_server/admin/v2/rooms/delete_status/:deleteId',
        auth: 'admin',
        response: deletionStatus,
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
 * Checks a request, and returns the deletion that it describes. Unknown rooms are answered with 400, as the
 * documentation of the reference server says, and not with 404.
 * @throws MatrixError M_INVALID_PARAM, M_NOT_FOUND for a deactivated `new_room_user_id`, errors of modules that refuse
 * the deletion
 */
async function prepareDeletion(
  { rooms, users, checkRoomDeletion }: DeletionRoutesDeps,
  administrator: string,
  roomId: string,
  body: DeletionBody,
): Promise<{ readonly head: RoomHead; readonly deletionRequest: RoomDeletionRequest }> {
  checkRoomId(roomId);
  // The id of a local user without an account is accepted, as by the reference server.
  const newRoomUser =
    body.new_room_user_id === undefined ? undefined : await users.find(body.new_room_user_id);
  if (newRoomUser?.isDeactivated) throw notFound('The account is deactivated');
  const head = await rooms.find(roomId);
  if (!head) throw invalidParam('This server does not know the room');
  await checkRoomDeletion?.(administrator, roomId);
  const deletionRequest = {
    roomId,
    newRoomUserId: body.new_room_user_id ?? null,
    newRoomName: body.room_name ?? defaultName,
    message: body.message ?? defaultMessage,
    purge: body.purge ?? true,
    blockedBy: body.block ? administrator : null,
    forcePurge: body.force_purge ?? false,
  };
  return { head, deletionRequest };
}

/** The response about an unknown room that was only blocked. */
const onlyBlocked = {
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
