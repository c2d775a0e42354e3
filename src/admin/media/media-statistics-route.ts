import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { invalidParam } from '../../protocol/index.ts';
import type { PageCursors } from '../paging/page-cursors.ts';
import { direction, pageParameters, pageWithTotal } from '../paging/page-query.ts';
import { integer, nullableText, text } from '../response-fields.ts';
import { type MediaUsage, type UsageMatches, usageOrders } from './media-usage.ts';

const time = Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));

/** Lists how much media each user has uploaded. */
export function mediaStatisticsRoute(usage: MediaUsage, cursors: PageCursors): Route {
  return route(
    {
      operationId: 'getUserMediaStatistics',
      method: 'GET',
      path: '/_server/admin/v1/statistics/users/media',
      auth: 'admin',
      query: Type.Object({
        ...pageParameters,
        order_by: Type.Union(
          usageOrders.map((order) => Type.Literal(order)),
          { default: 'user_id' },
        ),
        dir: Type.Optional(direction),
        from_ts: time,
        until_ts: time,
        search_term: Type.Optional(Type.String({ minLength: 1 })),
      }),
      response: Type.Object({
        users: Type.Array(
          Type.Object({
            user_id: text,
            displayname: nullableText,
            media_count: integer,
            media_length: integer,
          }),
        ),
        total: integer,
        next_token: Type.Optional(integer),
      }),
    },
    async ({ query, requester }) => {
      const filter = { from: query.from_ts, until: query.until_ts, searchTerm: query.search_term };
      if (filter.from !== undefined && filter.until !== undefined && filter.until <= filter.from) {
        throw invalidParam("'until_ts' must be greater than 'from_ts'");
      }
      const order = { by: query.order_by, descending: query.dir === 'b' };
      const listed = {
        administrator: requester.userId,
        list: JSON.stringify(['media usage', filter, order]),
      };
      let matches: UsageMatches | undefined;
      const { rows, next, total } = await pageWithTotal(cursors, listed, query, {
        read: (start, limit, total) =>
          usage.page(filter, order, {
            start,
            limit,
            matches: matches ?? (total === undefined ? undefined : { total }),
          }),
        async count() {
          if (filter.searchTerm === undefined) return usage.count(filter);
          matches = await usage.search(filter, filter.searchTerm);
          return matches.total;
        },
        countsFirst: filter.searchTerm !== undefined,
      });
      const users = rows.map((row) => ({
        user_id: row.user_id,
        displayname: row.displayname === null ? null : (JSON.parse(row.displayname) as string),
        media_count: Number(row.media_count),
        media_length: Number(row.media_length),
      }));
      return {
        users,
        total,
        ...(next !== undefined && { next_token: next }),
      };
    },
  );
}
