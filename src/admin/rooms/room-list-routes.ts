import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { PageCursors } from '../paging/page-cursors.ts';
import { direction, pageFrom, pageParameters } from '../paging/page-query.ts';
import { type ListedRoom, type RoomList, roomOrders } from './room-list.ts';

/** Lists the rooms that this server knows. */
export function roomListRoute(rooms: RoomList, cursors: PageCursors): Route {
  return route(
    {
      method: 'GET',
      path: '/_server/admin/v1/rooms',
      auth: 'admin',
      query: Type.Object({
        ...pageParameters,
        order_by: Type.Union(
          roomOrders.map((order) => Type.Literal(order)),
          { default: 'name' },
        ),
        dir: Type.Optional(direction),
        search_term: Type.Optional(Type.String({ minLength: 1 })),
        public_rooms: Type.Optional(Type.Boolean()),
        empty_rooms: Type.Optional(Type.Boolean()),
      }),
      response: Type.Object({
        rooms: Type.Array(Type.Object({ room_id: Type.String() })),
        offset: Type.Integer(),
        total_rooms: Type.Integer(),
        next_batch: Type.Optional(Type.Integer()),
        prev_batch: Type.Optional(Type.Integer()),
      }),
    },
    async ({ query, requester }) => {
      const filter = {
        searchTerm: query.search_term,
        isPublic: query.public_rooms,
        isEmpty: query.empty_rooms,
      };
      const order = { by: query.order_by, backwards: query.dir === 'b' };
      const listed = { administrator: requester.userId, list: JSON.stringify(['rooms', filter, order]) };
      const { rows, next } = await pageFrom(cursors, listed, query, (start, limit) =>
        rooms.page(filter, order, start, limit),
      );
      const { from, limit } = query;
      return {
        rooms: rows.map(roomJson),
        offset: from,
        total_rooms: await rooms.count(filter),
        ...(next !== undefined && { next_batch: next }),
        ...(from > 0 && { prev_batch: Math.max(0, from - limit) }),
      };
    },
  );
}

/** Returns the fields of a room that the list and the details have in common. */
export const roomJson = (room: ListedRoom) => ({
  room_id: room.room_id,
  name: room.name,
  canonical_alias: room.canonical_alias,
  joined_members: room.joined_members,
  joined_local_members: room.joined_local_members,
  version: room.version,
  creator: room.creator,
  encryption: room.encryption,
  federatable: room.federatable === 1,
  public: room.is_public === 1,
  join_rules: room.join_rule,
  guest_access: room.guest_can_join === 1 ? 'can_join' : 'forbidden',
  history_visibility: room.history_visibility,
  state_events: room.state_events,
  room_type: room.room_type,
});
