import { Type } from 'typebox';
import type { SpaceHierarchy } from '../../directory/index.ts';
import { type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { anyObject, flag, integer, text } from '../response-fields.ts';
import type { KnownRooms } from './known-rooms.ts';

/** A stripped state event of a space that names a child room. */
const childEvent = Type.Object({
  type: text,
  state_key: text,
  sender: text,
  origin_server_ts: integer,
  content: anyObject,
});

/** A room of the hierarchy. Source: client-server API, `GET /rooms/{roomId}/hierarchy`. */
const hierarchyRoom = Type.Unsafe<JsonObject>(
  Type.Object({
    room_id: text,
    name: Type.Optional(text),
    topic: Type.Optional(text),
    canonical_alias: Type.Optional(text),
    avatar_url: Type.Optional(text),
    room_type: Type.Optional(text),
    allowed_room_ids: Type.Optional(Type.Array(text)),
    encryption: Type.Optional(text),
    room_version: text,
    num_joined_members: integer,
    world_readable: flag,
    guest_can_join: flag,
    join_rule: text,
    children_state: Type.Array(childEvent),
  }),
);

/** Serves the hierarchy of a space in the format of the client-server API, with all rooms that this server is in. */
export function hierarchyRoute(hierarchy: SpaceHierarchy, rooms: KnownRooms): Route {
  return route(
    {
      operationId: 'getRoomHierarchy',
      method: 'GET',
      path: '/_server/admin/v1/rooms/:roomId/hierarchy',
      auth: 'admin',
      query: Type.Object({
        limit: Type.Optional(Type.Integer({ minimum: 1 })),
        max_depth: Type.Optional(Type.Integer({ minimum: 0 })),
        from: Type.Optional(Type.String()),
      }),
      response: Type.Object({ rooms: Type.Array(hierarchyRoom), next_batch: Type.Optional(text) }),
    },
    async ({ params: { roomId }, requester: { userId }, query: { limit, max_depth: maxDepth, from } }) => {
      await rooms.get(roomId);
      const request = { suggestedOnly: false, limit, maxDepth, from, seesAllRooms: true };
      const { rooms: found, ...nextBatch } = await hierarchy.page(userId, roomId, request);
      return { rooms: found as JsonObject[], ...nextBatch };
    },
  );
}
