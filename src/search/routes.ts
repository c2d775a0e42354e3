import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';
import { unknown } from '../protocol/index.ts';
import type { Search } from './search.ts';

/** Maximum characters of a search term. A longer text can be found by a part of it. */
const maxTermLength = 1_000;

const roomEvents = Type.Object({
  search_term: Type.String({ maxLength: maxTermLength }),
  keys: Type.Optional(
    Type.Array(
      Type.Union([Type.Literal('content.body'), Type.Literal('content.name'), Type.Literal('content.topic')]),
      { maxItems: 10 },
    ),
  ),
  filter: Type.Optional(Type.Object({})),
  order_by: Type.Optional(Type.Union([Type.Literal('recent'), Type.Literal('rank')])),
  event_context: Type.Optional(
    Type.Object({
      before_limit: Type.Optional(Type.Integer()),
      after_limit: Type.Optional(Type.Integer()),
      include_profile: Type.Optional(Type.Boolean()),
    }),
  ),
  include_state: Type.Optional(Type.Boolean()),
  groupings: Type.Optional(
    Type.Object({
      group_by: Type.Optional(
        Type.Array(
          Type.Object({
            key: Type.Optional(Type.Union([Type.Literal('room_id'), Type.Literal('sender')])),
          }),
          { maxItems: 10 },
        ),
      ),
    }),
  ),
});

/**
 * Returns the route of searches. Source: client-server API, "Server Side Search".
 * @param search absent when the operator has disabled it
 */
export function searchRoutes(search: Search | undefined): Route[] {
  return [
    route(
      {
        operationId: 'search',
        limitedKind: 'large response',
        method: 'POST',
        path: ['/_proto/client/v3/search', '/_proto/client/r0/search'],
        auth: 'user',
        query: Type.Object({ next_batch: Type.Optional(Type.String()) }),
        body: Type.Object({ search_categories: Type.Object({ room_events: Type.Optional(roomEvents) }) }),
      },
      async (request) => {
        const { body, query, requester } = request;
        if (!search) throw unknown('Search is disabled on this server', 400);
        const { room_events: criteria } = body.search_categories;
        if (!criteria) return { search_categories: {} };
        const result = await search.roomEvents(requester, criteria, query.next_batch, request);
        return { search_categories: { room_events: result } };
      },
    ),
  ];
}
