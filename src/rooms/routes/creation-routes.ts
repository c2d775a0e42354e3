import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { RoomAliases } from '../aliases/room-aliases.ts';
import type { RoomCreation } from '../creation/create-room.ts';
import { clientPath } from './paths.ts';
import { addressInvite, type ThirdPartyInviting } from './third-party-inviting.ts';

const jsonObject = Type.Unsafe<JsonObject>(Type.Object({}));

/** Maximum number of third-party invites in one request: each is looked up during the request. */
const maxAddresses = 20;

/** Maximum number of invited users in a request. */
const maxInvites = 2_000;

/** Maximum number of `initial_state` events in a request. */
const maxInitialState = 200;

/**
 * Maximum number of characters of a name or topic in a request. A shorter text may still make its event too large: such
 * a request is refused with 413 M_TOO_LARGE.
 */
const maxTextLength = 1_000_000;

const createRoomBody = Type.Object({
  visibility: Type.Optional(Type.Union([Type.Literal('public'), Type.Literal('private')])),
  room_alias_name: Type.Optional(Type.String()),
  name: Type.Optional(Type.String({ maxLength: maxTextLength })),
  topic: Type.Optional(Type.String({ maxLength: maxTextLength })),
  invite: Type.Optional(Type.Array(Type.String(), { maxItems: maxInvites })),
  invite_3pid: Type.Optional(Type.Array(addressInvite, { maxItems: maxAddresses })),
  room_version: Type.Optional(Type.String()),
  creation_content: Type.Optional(jsonObject),
  initial_state: Type.Optional(
    Type.Array(
      Type.Object({ type: Type.String(), state_key: Type.Optional(Type.String()), content: jsonObject }),
      { maxItems: maxInitialState },
    ),
  ),
  preset: Type.Optional(
    Type.Union([
      Type.Literal('private_chat'),
      Type.Literal('public_chat'),
      Type.Literal('trusted_private_chat'),
    ]),
  ),
  is_direct: Type.Optional(Type.Boolean()),
  power_level_content_override: Type.Optional(jsonObject),
});

/** Endpoints that create rooms and manage aliases. Source: client-server API, "Creation" and "Room aliases". */
export function creationRoutes(
  creation: RoomCreation,
  aliases: RoomAliases,
  thirdParties: ThirdPartyInviting,
): Route[] {
  return [
    route(
      {
        operationId: 'createRoom',
        method: 'POST',
        path: clientPath('/createRoom'),
        auth: 'user',
        refuseSuspended: true,
        body: createRoomBody,
        bodyLimit: 1024 * 1024,
        checkRate: ({ requester }) => requester && creation.checkRate(requester),
        response: Type.Object({ room_id: Type.String() }),
      },
      async ({ body: { invite_3pid: addresses = [], ...body }, requester }) => {
        if (requester.isShadowBanned) {
          return { room_id: await creation.create(requester.userId, { ...body, invite: [] }, requester) };
        }
        const { userIds, inviteOthers } = await thirdParties.prepare(requester, addresses);
        const invite = [...(body.invite ?? []), ...userIds];
        const roomId = await creation.create(requester.userId, { ...body, invite }, requester);
        await inviteOthers(roomId);
        return { room_id: roomId };
      },
    ),
    ...aliasRoutes(aliases),
  ];
}

function aliasRoutes(aliases: RoomAliases): Route[] {
  const path = clientPath('/directory/room/:roomAlias');
  return [
    route(
      {
        operationId: 'getRoomIdByAlias',
        method: 'GET',
        path,
        auth: 'none',
        response: Type.Object({ room_id: Type.String(), servers: Type.Array(Type.String()) }),
      },
      async ({ params }) => {
        const { roomId, servers } = await aliases.locate(params.roomAlias);
        return { room_id: roomId, servers };
      },
    ),
    route(
      {
        operationId: 'setRoomAlias',
        method: 'PUT',
        path,
        auth: 'user',
        refuseSuspended: true,
        body: Type.Object({ room_id: Type.String() }),
        response: Type.Object({}),
      },
      async ({ params, body, requester }) => {
        await aliases.create(requester, params.roomAlias, body.room_id, requester.isAdmin);
        return {};
      },
    ),
    route(
      { operationId: 'deleteRoomAlias', method: 'DELETE', path, auth: 'user', response: Type.Object({}) },
      async ({ params, requester }) => {
        await aliases.remove(requester, params.roomAlias, requester.isAdmin);
        return {};
      },
    ),
    route(
      {
        operationId: 'getLocalAliases',
        method: 'GET',
        path: [
          ...clientPath('/rooms/:roomId/aliases'),
          // Element Classic, FluffyChat and bots request this path.
          '/_proto/client/unstable/org.matrix.msc2432/rooms/:roomId/aliases',
        ],
        auth: 'user',
        response: Type.Object({ aliases: Type.Array(Type.String()) }),
      },
      async ({ params, requester }) => ({
        aliases: await (requester.isAdmin
          ? aliases.listForAdministrator(requester.userId, params.roomId)
          : aliases.listFor(requester.userId, params.roomId)),
      }),
    ),
  ];
}
