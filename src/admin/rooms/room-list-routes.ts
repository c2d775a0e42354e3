import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { PageCursors } from '../paging/page-cursors.ts';
import { direction, pageParameters, pageWithTotal } from '../paging/page-query.ts';
import { flag, integer, nullableText, text } from '../response-fields.ts';
import { type ListedRoom, type RoomList, roomOrders, type TermMatches } from './room-list.ts';

/** The fields of a room that the list and the details have in common. */
export const roomFields = {
  room_id: text,
  name: nullableText,
  canonical_alias: nullableText,
  joined_members: integer,
  joined_local_members: integer,
  version: text,
  creator: text,
  encryption: nullableText,
  federatable: flag,
  public: flag,
  join_rules: text,
  guest_access: text,
  history_visibility: text,
  state_events: integer,
  room_type: nullableText,
};

/** Lists the rooms that this server knows. */
export function roomListRoute(rooms: RoomList, cursors: PageCursors): Route {
  return route(
    {
      operationId: 'listRooms',
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
        rooms: Type.Array(Type.Object(roomFields)),
        offset: integer,
        total_rooms: integer,
        next_batch: Type.Optional(integer),
        prev_batch: Type.Optional(integer),
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
      let matches: TermMatches | undefined;
      const { rows, next, total } = await pageWithTotal(cursors, listed, query, {
        read: (start, limit, total) =>
          rooms.page(filter, order, { start, limit, ...(matches ?? (total !== undefined && { total })) }),
        async count() {
          if (filter.searchTerm === undefined) return rooms.count(filter);
          matches = await rooms.search(filter);
          return matches.total;
        },
        countsFirst: filter.searchTerm !== undefined || query.from > 0,
      });
      const { from, limit } = query;
      return {
        rooms: rows.map(roomJson),
        offset: from,
        total_rooms: total,
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
