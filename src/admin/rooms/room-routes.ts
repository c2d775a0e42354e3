import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { type JsonObject, notFound } from '../../protocol/index.ts';
import { type RoomHead, type RoomReader, visibleContent } from '../../room-engine/index.ts';
import type { ClientEvents } from '../../rooms/index.ts';
import { anyObject, flag, integer, nullableText, text } from '../response-fields.ts';
import type { KnownRooms } from './known-rooms.ts';
import type { RoomList } from './room-list.ts';
import { roomFields, roomJson } from './room-list-routes.ts';

const path = '/_server/admin/v1/rooms/:roomId';

export interface RoomRoutesDeps {
  readonly engine: RoomReader;
  readonly clientEvents: ClientEvents;
  readonly rooms: KnownRooms;
  readonly list: RoomList;
}

/** Serves the details, the members and the state of a room. */
export function roomRoutes(deps: RoomRoutesDeps): Route[] {
  return [detailsRoute(deps), membersRoute(deps), stateRoute(deps)];
}

function detailsRoute({ engine, rooms, list }: RoomRoutesDeps): Route {
  return route(
    {
      operationId: 'getRoom',
      method: 'GET',
      path,
      auth: 'admin',
      response: Type.Object({
        ...roomFields,
        topic: nullableText,
        avatar: nullableText,
        joined_local_devices: integer,
        forgotten: flag,
        tombstoned: flag,
        replacement_room: nullableText,
      }),
    },
    async ({ params: { roomId } }) => {
      const head = await rooms.get(roomId);
      const [listed, devices, forgotten, tombstone] = await Promise.all([
        list.get(roomId),
        list.localDevices(head.roomNid),
        list.isForgotten(head.roomNid),
        contentOf(engine, head, 'm.room.tombstone'),
      ]);
      if (!listed) throw notFound('Room not found');
      const replacement = tombstone?.['replacement_room'];
      return {
        ...roomJson(listed),
        topic: listed.topic,
        avatar: listed.avatar_url,
        joined_local_devices: devices,
        forgotten,
        tombstoned: tombstone !== undefined,
        replacement_room: typeof replacement === 'string' ? replacement : null,
      };
    },
  );
}

function membersRoute({ rooms }: RoomRoutesDeps): Route {
  return route(
    {
      operationId: 'listRoomMembers',
      method: 'GET',
      path: `${path}/members`,
      auth: 'admin',
      response: Type.Object({ members: Type.Array(text), total: integer }),
    },
    async ({ params: { roomId } }) => {
      const head = await rooms.get(roomId);
      const joined = [...head.members].filter(([, membership]) => membership === 'join');
      const members = joined.map(([userId]) => userId).sort();
      return { members, total: members.length };
    },
  );
}

function stateRoute({ engine, clientEvents, rooms }: RoomRoutesDeps): Route {
  return route(
    {
      operationId: 'getRoomStateEvents',
      method: 'GET',
      path: `${path}/state`,
      auth: 'admin',
      query: Type.Object({ type: Type.Optional(Type.String()) }),
      response: Type.Object({ state: Type.Array(anyObject) }),
    },
    async ({ params: { roomId }, query: { type }, requester }) => {
      const head = await rooms.get(roomId);
      const events = [
        ...(await engine.events.getMany([...head.state.values()].map(({ nid }) => nid))).values(),
      ];
      const wanted = type === undefined ? events : events.filter(({ event }) => event.type === type);
      const shown = wanted.map((stored) => ({ stored, membership: undefined }));
      return { state: await clientEvents.render(shown, requester) };
    },
  );
}

async function contentOf(engine: RoomReader, head: RoomHead, type: string): Promise<JsonObject | undefined> {
  const entry = head.entry(type, '');
  const stored = entry && (await engine.events.get(entry.nid));
  return stored && visibleContent(stored);
}
