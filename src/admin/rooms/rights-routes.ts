import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { invalidParam, isUserId } from '../../protocol/index.ts';
import type { DummyEvents, Rooms } from '../../rooms/index.ts';
import { integer, nothing, nullableInteger, text } from '../response-fields.ts';
import type { LocalUsers } from '../users/local-user.ts';
import type { KnownRooms } from './known-rooms.ts';
import { joinRuleOf, RoomAdministrators } from './room-administrators.ts';

export interface RightsRoutesDeps {
  readonly rooms: Rooms;
  readonly dummyEvents: DummyEvents;
  readonly knownRooms: KnownRooms;
  readonly users: LocalUsers;
  readonly serverName: string;
}

/** Maximum number of servers in the query parameter `server_name` of a join. */
const maxServers = 100;

/** Joins users to rooms, makes users administrators of rooms, and lists and merges forward extremities. */
export function rightsRoutes(deps: RightsRoutesDeps): Route[] {
  return [joinRoute(deps), makeAdminRoute(deps), ...extremityRoutes(deps)];
}

function joinRoute({ rooms, knownRooms, users }: RightsRoutesDeps): Route {
  const { engine, memberships } = rooms;
  return route(
    {
      operationId: 'joinUserToRoom',
      method: 'POST',
      path: '/_server/admin/v1/join/:roomIdOrAlias',
      auth: 'admin',
      query: Type.Object({
        server_name: Type.Optional(Type.Array(Type.String(), { maxItems: maxServers })),
      }),
      body: Type.Object({ user_id: Type.String() }),
      response: Type.Object({ room_id: Type.String() }),
    },
    async ({ params: { roomIdOrAlias }, query, body: { user_id: userId }, requester }) => {
      await users.getActive(userId);
      const { roomId, servers } = await knownRooms.locate(roomIdOrAlias);
      const head = await engine.heads.get(roomId);
      const membership = head?.membership(userId);
      const isOpen = head && (await joinRuleOf(engine, head)) === 'public';
      // The user needs an invite, which the administrator can send only as a member of the room.
      if (head && !isOpen && membership !== 'join' && membership !== 'invite') {
        await memberships.invite(requester.userId, roomId, userId);
      }
      await memberships.join(userId, roomId, { via: [...servers, ...(query.server_name ?? [])] });
      return { room_id: roomId };
    },
  );
}

function makeAdminRoute({ rooms, knownRooms, users, serverName }: RightsRoutesDeps): Route {
  const administrators = new RoomAdministrators(rooms, serverName);
  return route(
    {
      operationId: 'makeRoomAdmin',
      method: 'POST',
      path: '/_server/admin/v1/rooms/:roomIdOrAlias/make_room_admin',
      auth: 'admin',
      body: Type.Object({ user_id: Type.Optional(Type.String()) }),
      response: nothing,
    },
    async ({ params: { roomIdOrAlias }, body, requester }) => {
      const userId = body.user_id ?? requester.userId;
      if (!isUserId(userId)) throw invalidParam('The user id is not valid');
      if (users.isLocal(userId)) await users.getActive(userId);
      await administrators.add(await knownRooms.named(roomIdOrAlias), userId);
      return {};
    },
  );
}

function extremityRoutes({ rooms, dummyEvents, knownRooms }: RightsRoutesDeps): Route[] {
  const path = '/_server/admin/v1/rooms/:roomIdOrAlias/forward_extremities';
  return [
    route(
      {
        operationId: 'listForwardExtremities',
        method: 'GET',
        path,
        auth: 'admin',
        response: Type.Object({
          count: integer,
          results: Type.Array(
            Type.Object({
              event_id: text,
              state_group: nullableInteger,
              depth: integer,
              received_ts: integer,
            }),
          ),
        }),
      },
      async ({ params: { roomIdOrAlias } }) => {
        const { extremities } = await knownRooms.named(roomIdOrAlias);
        const events = await rooms.engine.events.getMany(extremities.map(({ nid }) => nid));
        const results = extremities.map(({ nid, eventId, depth, stateGroup }) => ({
          event_id: eventId,
          state_group: stateGroup ?? null,
          depth,
          // `origin_server_ts` of the event: this server does not store when it received events.
          received_ts: events.get(nid)?.event.originServerTs ?? 0,
        }));
        return { count: results.length, results };
      },
    ),
    route(
      {
        operationId: 'deleteForwardExtremities',
        method: 'DELETE',
        path,
        auth: 'admin',
        response: Type.Object({ deleted: Type.Integer() }),
      },
      async ({ params: { roomIdOrAlias } }) => {
        const { roomId } = await knownRooms.named(roomIdOrAlias);
        return { deleted: await dummyEvents.merge(roomId) };
      },
    ),
  ];
}
