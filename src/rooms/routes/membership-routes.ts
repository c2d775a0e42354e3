import { Type } from 'typebox';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import { badJson, isRoomId, type JsonObject } from '../../protocol/index.ts';
import type { RoomAliases } from '../aliases/room-aliases.ts';
import type { MembershipRequest } from '../membership/member-event.ts';
import type { Memberships } from '../membership/memberships.ts';
import { clientPath } from './paths.ts';
import { reasonField, reasonOf, type WithReason } from './reason.ts';
import { type AddressInvite, addressInvite, type ThirdPartyInviting } from './third-party-inviting.ts';

const reasonBody = Type.Object(reasonField);
const targetBody = Type.Object({ user_id: Type.String(), ...reasonField });
const joinBody = Type.Object({
  ...reasonField,
  third_party_signed: Type.Optional(Type.Unsafe<JsonObject>(Type.Object({}))),
});

/** Maximum number of servers to join through in a request; clients usually send three. */
const maxServers = 100;

/** Servers to join through; `server_name` is the earlier name of `via`. */
const viaQuery = Type.Object({
  via: Type.Optional(Type.Array(Type.String(), { maxItems: maxServers })),
  server_name: Type.Optional(Type.Array(Type.String(), { maxItems: maxServers })),
});
type ViaQuery = { via?: readonly string[]; server_name?: readonly string[] };
const viaOf = ({ via = [], server_name: serverNames = [] }: ViaQuery) => [...via, ...serverNames];
const roomIdResponse = Type.Object({ room_id: Type.String() });
const emptyResponse = Type.Object({});

/** Endpoints that change memberships. Source: client-server API, "Room membership". */
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
  const join = async (requester: Requester, roomId: string, via: readonly string[], body: JoinBody) => {
    const { third_party_signed: signedInvite } = body;
    if (signedInvite) await thirdParties.redeem(requester.userId, roomId, signedInvite);
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
        const { roomId, via } = await locate(aliases, params.roomIdOrAlias, query);
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
        const { roomId, via } = await locate(aliases, params.roomIdOrAlias, query);
        await memberships.knock(requester.userId, roomId, { requester, extraContent: reasonOf(body), via });
        return { room_id: roomId };
      },
    ),
  ];
}

/** Returns the room id and the servers to join through. The servers that the request names come first. */
async function locate(aliases: RoomAliases, idOrAlias: string, query: ViaQuery) {
  const viaOfClient = viaOf(query);
  if (isRoomId(idOrAlias)) return { roomId: idOrAlias, via: viaOfClient };
  const { roomId, servers } = await aliases.locate(idOrAlias);
  return { roomId, via: [...viaOfClient, ...servers] };
}

type JoinBody = JsonObject & WithReason & { third_party_signed?: JsonObject };

/**
 * Fields of the body that the endpoint does not know are content of the membership event, for instance the profile for
 * this room. A repeated join without content changes nothing, the profile included: then `extraContent` is absent.
 */
function joinRequest(requester: Requester, body: JoinBody): MembershipRequest {
  const { reason: _reason, third_party_signed: _signed, ...content } = body;
  const extraContent = { ...content, ...reasonOf(body) };
  return Object.keys(extraContent).length === 0 ? { requester } : { requester, extraContent };
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
        response: emptyResponse,
      },
      async ({ params, body, requester }) => {
        await memberships.leave(requester.userId, params.roomId, { requester, extraContent: reasonOf(body) });
        return {};
      },
    ),
    route(
      {
        operationId: 'forgetRoom',
        method: 'POST',
        path: clientPath('/rooms/:roomId/forget'),
        auth: 'guest',
        response: emptyResponse,
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
        response: emptyResponse,
      },
      async ({ params, body, requester }) => {
        const request = { requester, extraContent: reasonOf(body) };
        await memberships[action](requester.userId, params.roomId, body.user_id, request);
        return {};
      },
    ),
  );
}

/** Returns the endpoint that invites by user id or by third-party identifier. */
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
        ...reasonField,
        ...Type.Partial(addressInvite).properties,
      }),
      response: emptyResponse,
    },
    async ({ params, body, requester }) => {
      if (requester.isShadowBanned) return {};
      if (body.user_id === undefined) {
        await thirdParties.invite(requester, params.roomId, addressOf(body));
        return {};
      }
      const request = { requester, extraContent: reasonOf(body) };
      await memberships.invite(requester.userId, params.roomId, body.user_id, request);
      return {};
    },
  );
}

function addressOf(body: Partial<AddressInvite>): AddressInvite {
  const { id_server, id_access_token, medium, address } = body;
  if (medium === undefined || address === undefined) {
    throw badJson('Either user_id, or medium and address, must be present');
  }
  if (id_server === undefined || id_access_token === undefined) {
    throw badJson('id_server and id_access_token must be present');
  }
  return { id_server, id_access_token, medium, address };
}
