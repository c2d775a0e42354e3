import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { invalidParam } from '../../protocol/index.ts';
import type { PageCursors } from '../paging/page-cursors.ts';
import { direction, pageFrom, pageParameters } from '../paging/page-query.ts';
import { type MediaUsage, usageOrders } from './media-usage.ts';

const time = Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));

/** Lists how much media each user has uploaded. */
export function mediaStatisticsRoute(usage: MediaUsage, cursors: PageCursors): Route {
  return route(
    {
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
        users: Type.Array(Type.Object({ user_id: Type.String(), media_count: Type.Integer() })),
        total: Type.Integer(),
        next_token: Type.Optional(Type.Integer()),
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
      const { rows, next } = await pageFrom(cursors, listed, query, (start, limit) =>
        usage.page(filter, order, start, limit),
      );
      const users = rows.map((row) => ({
        user_id: row.user_id,
        displayname: row.displayname === null ? null : (JSON.parse(row.displayname) as string),
        media_count: Number(row.media_count),
        media_length: Number(row.media_length),
      }));
      return {
        users,
        total: await usage.count(filter),
        ...(next !== undefined && { next_token: next }),
      };
    },
  );
}
