import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { SpaceHierarchy } from './hierarchy.ts';
import type { RoomSummaries } from './room-summaries.ts';

const via = Type.Object({ via: Type.Optional(Type.Array(Type.String(), { maxItems: 100 })) });

/**
 * Returns the routes of summaries and hierarchies of rooms.
 * Source: client-server API, "Room Summary API" and "Spaces"; with the unstable paths.
 */
export function spaceRoutes(summaries: RoomSummaries, hierarchy: SpaceHierarchy): Route[] {
  return [
    route(
      {
        operationId: 'getRoomSummary',
        method: 'GET',
        path: '/_proto/client/v1/room_summary/:roomIdOrAlias',
        auth: 'optional',
        query: via,
      },
      ({ params, requester, query }) => summaries.summary(params.roomIdOrAlias, requester?.userId, query.via),
    ),
    route(
      {
        method: 'GET',
        path: [
          '/_proto/client/unstable/im.nheko.summary/summary/:roomIdOrAlias',
          '/_proto/client/unstable/im.nheko.summary/rooms/:roomIdOrAlias/summary',
        ],
        auth: 'optional',
        query: via,
      },
      async ({ params, requester, query }) => {
        const summary = await summaries.summary(params.roomIdOrAlias, requester?.userId, query.via);
        const { encryption, room_version } = summary;
        return {
          ...summary,
          ...(room_version === undefined ? undefined : { 'im.nheko.summary.room_version': room_version }),
          ...(encryption === undefined ? undefined : { 'im.nheko.summary.encryption': encryption }),
        };
      },
    ),
    route(
      {
        operationId: 'getSpaceHierarchy',
        limitedKind: 'large response',
        method: 'GET',
        path: [
          '/_proto/client/v1/rooms/:roomId/hierarchy',
          '/_proto/client/unstable/org.matrix.msc2946/rooms/:roomId/hierarchy',
        ],
        auth: 'guest',
        query: Type.Object({
          suggested_only: Type.Optional(Type.Boolean()),
          limit: Type.Optional(Type.Integer()),
          max_depth: Type.Optional(Type.Integer()),
          from: Type.Optional(Type.String()),
        }),
      },
      ({ params: { roomId }, requester: { userId }, query }) =>
        hierarchy.page(userId, roomId, {
          suggestedOnly: query.suggested_only ?? false,
          limit: query.limit,
          maxDepth: query.max_depth,
          from: query.from,
        }),
    ),
  ];
}
