import { Type } from 'typebox';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import { badJson, isRoomId, type JsonObject } from '../../protocol/index.ts';
import type { RoomAliases } from '../aliases/room-aliases.ts';
import type { MembershipRequest } from '../membership/member-event.ts';
import type { Memberships } from '../membership/memberships.ts';
import { clientPath } from './paths.ts';
import { reasonMember, reasonOf, type WithReason } from './reason.ts';
import { type AddressInvite, addressInvite, type ThirdPartyInviting } from './third-party-inviting.ts';

const reasonBody = Type.Object(reasonMember);
const targetBody = Type.Object({ user_id: Type.String(), ...reasonMember });
const joinBody = Type.Object({
  ...reasonMember,
  third_party_signed: Type.Optional(Type.Unsafe<JsonObject>(Type.Object({}))),
});
/** Maximum number of servers to join through; clients name three. */
const maxServers = 100;

/** Servers to join through; `server_name` is the earlier name of `via`. */
const viaQuery = Type.Object({
  via: Type.Optional(Type.Array(Type.String(), { maxItems: maxServers })),
  server_name: Type.Optional(Type.Array(Type.String(), { maxItems: maxServers })),
});
type ViaQuery = { via?: readonly string[]; server_name?: readonly string[] };
const viaOf = ({ via = [], server_name: older = [] }: ViaQuery) => [...via, ...older];
const roomIdResponse = Type.Object({ room_id: Type.String() });
const nothing = Type.Object({});

/** Client-server API, "Room membership". */
export function membershipRoutes(
  memberships: Memberships,
  aliases: RoomAliases,
  thirdParties: ThirdPartyInviting,
): Route[] {
  return [
    ...joinRoutes(memberships, aliases, thirdParties),
    ...leavingRoutes(memberships),
    ...moderationRoutes(memberships),
    inviteRoute(memberships, thirdParties),
  ];
}

function joinRoutes(
  memberships: Memberships,
  aliases: RoomAliases,
  thirdParties: ThirdPartyInviting,
): Route[] {
  /** The room id and candidate servers: those of the client first. */
  const locate = async (idOrAlias: string, query: ViaQuery) => {
    const named = viaOf(query);
    if (isRoomId(idOrAlias)) return { roomId: idOrAlias, via: named };
    const { roomId, servers } = await aliases.locate(idOrAlias);
    return { roomId, via: [...named, ...servers] };
  };
  const join = async (requester: Requester, roomId: string, via: readonly string[], body: JoinBody) => {
    const { third_party_signed: signed } = body;
    if (signed) await thirdParties.redeem(requester.userId, roomId, signed);
    await memberships.join(requester.userId, roomId, { ...joinRequest(requester, body), via });
    return { room_id: roomId };
  };
  return [
    route(
      {
        operationId: 'joinRoomById',
        method: 'POST',
        path: clientPath('/rooms/:roomId/join'),
        auth: 'guest',
        refuseSuspended: true,
        query: viaQuery,
        body: joinBody,
        response: roomIdResponse,
      },
      ({ params, query, body, requester }) => join(requester, params.roomId, viaOf(query), body),
    ),
    route(
      {
        operationId: 'joinRoom',
        method: 'POST',
        path: clientPath('/join/:roomIdOrAlias'),
        auth: 'guest',
        refuseSuspended: true,
        query: viaQuery,
        body: joinBody,
        response: roomIdResponse,
      },
      async ({ params, query, body, requester }) => {
        const { roomId, via } = await locate(params.roomIdOrAlias, query);
        return join(requester, roomId, via, body);
      },
    ),
    route(
      {
        operationId: 'knockRoom',
        method: 'POST',
        path: clientPath('/knock/:roomIdOrAlias'),
        auth: 'user',
        refuseSuspended: true,
        query: viaQuery,
        body: reasonBody,
        response: roomIdResponse,
      },
      async ({ params, query, body, requester }) => {
        const { roomId, via } = await locate(params.roomIdOrAlias, query);
        await memberships.knock(requester.userId, roomId, { requester, given: reasonOf(body), via });
        return { room_id: roomId };
      },
    ),
  ];
}

type JoinBody = JsonObject & WithReason & { third_party_signed?: JsonObject };

/**
 * Fields of the body that the endpoint does not know are content of the membership event, for instance the profile for
 * this room. A repeated join without content changes nothing, the profile included: then `given` is absent.
 */
function joinRequest(requester: Requester, body: JoinBody): MembershipRequest {
  const { reason: _reason, third_party_signed: _signed, ...content } = body;
  const given = { ...content, ...reasonOf(body) };
  return Object.keys(given).length === 0 ? { requester } : { requester, given };
}

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

/** Invites by user id and by third-party identifier. */
function inviteRoute(memberships: Memberships, thirdParties: ThirdPartyInviting): Route {
  return route(
    {
      operationId: 'inviteUser',
      method: 'POST',
      path: clientPath('/rooms/:roomId/invite'),
      auth: 'user',
      refuseSuspended: true,
      body: Type.Object({
        user_id: Type.Optional(Type.String()),
        ...reasonMember,
        ...Type.Partial(addressInvite).properties,
      }),
      response: nothing,
    },
    async ({ params, body, requester }) => {
      if (requester.isShadowBanned) return {};
      if (body.user_id === undefined) {
        await thirdParties.invite(requester, params.roomId, addressIn(body));
        return {};
      }
      const request = { requester, given: reasonOf(body) };
      await memberships.invite(requester.userId, params.roomId, body.user_id, request);
      return {};
    },
  );
}

function addressIn(body: Partial<AddressInvite>): AddressInvite {
  const { id_server, id_access_token, medium, address } = body;
  if (medium === undefined || address === undefined) {
    throw badJson('user_id is missing, or medium and address');
  }
  if (id_server === undefined || id_access_token === undefined) {
    throw badJson('id_server and id_access_token are missing');
  }
  return { id_server, id_access_token, medium, address };
}
