import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { MediaModeration } from '../../media/index.ts';
import type { PageCursors } from '../paging/page-cursors.ts';
import { direction, pageFrom, pageParameters } from '../paging/page-query.ts';
import { flag, integer, nullableInteger, nullableText, text } from '../response-fields.ts';
import type { LocalUsers } from '../users/local-user.ts';
import { type ListedMedia, mediaOrders, type UserMediaList } from './user-media-list.ts';

const path = '/_server/admin/v1/users/:userId/media';

const query = Type.Object({
  ...pageParameters,
  order_by: Type.Optional(Type.Union(mediaOrders.map((order) => Type.Literal(order)))),
  dir: Type.Optional(direction),
});

const media = Type.Object({
  media_id: text,
  media_type: nullableText,
  media_length: nullableInteger,
  upload_name: nullableText,
  created_ts: integer,
  last_access_ts: nullableInteger,
  quarantined_by: nullableText,
  safe_from_quarantine: flag,
});

export interface UserMediaDeps {
  readonly moderation: MediaModeration;
  readonly list: UserMediaList;
  readonly users: LocalUsers;
  readonly cursors: PageCursors;
}

/** Lists and deletes the uploads of a user: the newest first, unless the request has an order or a direction. */
export function userMediaRoutes({ moderation, list, users, cursors }: UserMediaDeps): Route[] {
  const orderOf = (query: { order_by?: (typeof mediaOrders)[number]; dir?: 'f' | 'b' }) => ({
    by: query.order_by ?? 'created_ts',
    descending: query.dir === 'b' || (query.dir === undefined && query.order_by === undefined),
  });
  return [
    route(
      {
        operationId: 'listUserMedia',
        method: 'GET',
        path,
        auth: 'admin',
        query,
        response: Type.Object({
          media: Type.Array(media),
          total: integer,
          next_token: Type.Optional(integer),
        }),
      },
      async ({ params: { userId }, query: pageQuery, requester }) => {
        await users.get(userId);
        await moderation.updateAccessTimes();
        const order = orderOf(pageQuery);
        const listed = { administrator: requester.userId, list: JSON.stringify(['media', userId, order]) };
        const { rows, next } = await pageFrom(cursors, listed, pageQuery, (start, limit) =>
          list.page(userId, order, start, limit),
        );
        return {
          media: rows.map(mediaJson),
          total: await list.count(userId),
          ...(next !== undefined && { next_token: next }),
        };
      },
    ),
    route(
      {
        operationId: 'deleteUserMedia',
        method: 'DELETE',
        path,
        auth: 'admin',
        query,
        response: Type.Object({ deleted_media: Type.Array(text), total: integer }),
      },
      async ({ params: { userId }, query: { from, limit, ...orderQuery } }) => {
        await users.get(userId);
        const size = Math.min(limit, maxDeleted);
        const { rows } = await list.page(userId, orderOf(orderQuery), { offset: from }, Math.max(1, size));
        const deleted = size === 0 ? [] : await moderation.deleteLocal(rows.map((row) => row.media_id));
        return { deleted_media: deleted, total: deleted.length };
      },
    ),
  ];
}

/** Maximum number of files that one request deletes. */
const maxDeleted = 1_000;

const mediaJson = (media: ListedMedia) => ({
  media_id: media.media_id,
  media_type: media.content_type,
  media_length: media.size,
  upload_name: media.file_name,
  created_ts: media.created_at,
  last_access_ts: media.last_access_at,
  quarantined_by: media.quarantined_by,
  safe_from_quarantine: media.protected === 1,
});
