import { Type } from 'typebox';
import type { SpaceHierarchy } from '../../directory/index.ts';
import { type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { anyObject, text } from '../response-fields.ts';
import type { KnownRooms } from './known-rooms.ts';

/** Returns the hierarchy of a space in the format of the client-server API, with all rooms that this server is in. */
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
      response: Type.Object({ rooms: Type.Array(anyObject), next_batch: Type.Optional(text) }),
    },
    async ({ params: { roomId }, requester: { userId }, query: { limit, max_depth: maxDepth, from } }) => {
      await rooms.get(roomId);
      const request = { suggestedOnly: false, limit, maxDepth, from, seesAllRooms: true };
      const { rooms: found, ...rest } = await hierarchy.page(userId, roomId, request);
      return { rooms: found as JsonObject[], ...rest };
    },
  );
}
