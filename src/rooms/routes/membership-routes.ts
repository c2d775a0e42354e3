import { Type } from 'typebox';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import { badJson, isRoomId, type JsonObject } from '../../protocol/index.ts';
import type { RoomAliases } from '../aliases/room-aliases.ts';
import type { MembershipRequest, Memberships } from '../membership/memberships.ts';
import { clientPath } from './paths.ts';

const reasonBody = Type.Object({ reason: Type.Optional(Type.String()) });
const targetBody = Type.Object({ user_id: Type.String(), reason: Type.Optional(Type.String()) });
const joinBody = Type.Object({
  reason: Type.Optional(Type.String()),
  third_party_signed: Type.Optional(Type.Unsafe<JsonObject>(Type.Object({}))),
});
const roomIdResponse = Type.Object({ room_id: Type.String() });
const nothing = Type.Object({});

/** Client-server API, "Room membership". */
export function membershipRoutes(memberships: Memberships, aliases: RoomAliases): Route[] {
  return [
    ...joinRoutes(memberships, aliases),
    ...leavingRoutes(memberships),
    ...moderationRoutes(memberships),
    inviteRoute(memberships),
  ];
}

function joinRoutes(memberships: Memberships, aliases: RoomAliases): Route[] {
  const roomIdOf = (idOrAlias: string) => (isRoomId(idOrAlias) ? idOrAlias : aliases.resolve(idOrAlias));
  return [
    route(
      {
        operationId: 'joinRoomById',
        method: 'POST',
        path: clientPath('/rooms/:roomId/join'),
        auth: 'guest',
        refuseSuspended: true,
        body: joinBody,
        response: roomIdResponse,
      },
      async ({ params, body, requester }) => {
        await memberships.join(requester.userId, params.roomId, joinRequest(requester, body));
        return { room_id: params.roomId };
      },
    ),
    route(
      {
        operationId: 'joinRoom',
        method: 'POST',
        path: clientPath('/join/:roomIdOrAlias'),
        auth: 'guest',
        refuseSuspended: true,
        body: joinBody,
        response: roomIdResponse,
      },
      async ({ params, body, requester }) => {
        const roomId = await roomIdOf(params.roomIdOrAlias);
        await memberships.join(requester.userId, roomId, joinRequest(requester, body));
        return { room_id: roomId };
      },
    ),
    route(
      {
        operationId: 'knockRoom',
        method: 'POST',
        path: clientPath('/knock/:roomIdOrAlias'),
        auth: 'user',
        refuseSuspended: true,
        body: reasonBody,
        response: roomIdResponse,
      },
      async ({ params, body, requester }) => {
        const roomId = await roomIdOf(params.roomIdOrAlias);
        await memberships.knock(requester.userId, roomId, { requester, given: reasonOf(body) });
        return { room_id: roomId };
      },
    ),
  ];
}

type JoinBody = { reason?: string; third_party_signed?: JsonObject };

/** Joining once more changes nothing, also not the profile: then nothing is given. */
function joinRequest(requester: Requester, body: JoinBody): MembershipRequest {
  const given = {
    ...reasonOf(body),
    ...(body.third_party_signed && { third_party_invite: { signed: body.third_party_signed } }),
  };
  return Object.keys(given).length === 0 ? { requester } : { requester, given };
}

const reasonOf = ({ reason }: { reason?: string }): JsonObject => (reason === undefined ? {} : { reason });

function leavingRoutes(memberships: Memberships): Route[] {
  return [
    route(
      {
        operationId: 'leaveRoom',
        method: 'POST',
        path: clientPath('/rooms/:roomId/leave'),
        auth: 'guest',
        body: reasonBody,
        response: nothing,
      },
      async ({ params, body, requester }) => {
        await memberships.leave(requester.userId, params.roomId, { requester, given: reasonOf(body) });
        return {};
      },
    ),
    route(
      {
        operationId: 'forgetRoom',
        method: 'POST',
        path: clientPath('/rooms/:roomId/forget'),
        auth: 'guest',
        response: nothing,
      },
      async ({ params, requester }) => {
        await memberships.forget(requester.userId, params.roomId);
        return {};
      },
    ),
  ];
}

function moderationRoutes(memberships: Memberships): Route[] {
  const actions = ['kick', 'ban', 'unban'] as const;
  return actions.map((action) =>
    route(
      {
        operationId: action,
        method: 'POST',
        path: clientPath(`/rooms/:roomId/${action}`),
        auth: 'user',
        refuseSuspended: true,
        body: targetBody,
        response: nothing,
      },
      async ({ params, body, requester }) => {
        const request = { requester, given: reasonOf(body) };
        await memberships[action](requester.userId, params.roomId, body.user_id, request);
        return {};
      },
    ),
  );
}

function inviteRoute(memberships: Memberships): Route {
  return route(
    {
      operationId: 'inviteUser',
      method: 'POST',
      path: clientPath('/rooms/:roomId/invite'),
      auth: 'user',
      refuseSuspended: true,
      body: Type.Object({ user_id: Type.Optional(Type.String()), reason: Type.Optional(Type.String()) }),
      response: nothing,
    },
    async ({ params, body, requester }) => {
      if (body.user_id === undefined) throw badJson('user_id is missing');
      const request = { requester, given: reasonOf(body) };
      await memberships.invite(requester.userId, params.roomId, body.user_id, request);
      return {};
    },
  );
}
