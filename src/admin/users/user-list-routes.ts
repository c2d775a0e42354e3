import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { PageCursors } from '../paging/page-cursors.ts';
import { direction, pageParameters, pageWithTotal } from '../paging/page-query.ts';
import { flag, integer, nullableInteger, nullableText, text } from '../response-fields.ts';
import type { ListedUser, NameMatches, UserFilter, UserList } from './user-list.ts';
import { type UserOrder, userOrders } from './user-list.ts';

const parameters = {
  ...pageParameters,
  name: Type.Optional(Type.String()),
  user_id: Type.Optional(Type.String()),
  guests: Type.Boolean({ default: true }),
  admins: Type.Optional(Type.Boolean()),
  locked: Type.Boolean({ default: false }),
  not_user_type: Type.Array(Type.String(), { maxItems: 100, default: [] }),
  order_by: Type.Union(
    userOrders.map((order) => Type.Literal(order)),
    { default: 'name' },
  ),
  dir: Type.Optional(direction),
};

const response = Type.Object({
  users: Type.Array(
    Type.Object({
      name: text,
      is_guest: flag,
      admin: flag,
      user_type: nullableText,
      deactivated: flag,
      erased: flag,
      shadow_banned: flag,
      displayname: nullableText,
      avatar_url: nullableText,
      creation_ts: integer,
      last_seen_ts: nullableInteger,
      locked: flag,
      suspended: flag,
    }),
  ),
  next_token: Type.Optional(Type.String()),
  total: Type.Integer(),
});

/**
 * Lists local users. In version 2, `deactivated=true` adds deactivated users to the list. In version 3, the list has all
 * users without this parameter, only deactivated users with `true`, and no deactivated users with `false`.
 */
export function userListRoutes(users: UserList, cursors: PageCursors): Route[] {
  const list = async (
    administrator: string,
    filter: UserFilter,
    page: { from: number; limit: number; order_by: UserOrder; dir?: 'f' | 'b' },
  ) => {
    const order = { by: page.order_by, descending: page.dir === 'b' };
    const listed = { administrator, list: JSON.stringify(['users', filter, order]) };
    let matches: NameMatches | undefined;
    const { rows, next, total } = await pageWithTotal(cursors, listed, page, {
      read: (start, limit, total) =>
        users.page(filter, order, {
          start,
          limit,
          matches: matches ?? (total === undefined ? undefined : { total }),
        }),
      async count() {
        if (filter.name === undefined) return users.count(filter);
        matches = await users.search(filter, filter.name);
        return matches.total;
      },
      countsFirst: filter.name !== undefined,
    });
    return {
      users: rows.map(toResponse),
      ...(next !== undefined && { next_token: String(next) }),
      total,
    };
  };
  const filterOf = (query: {
    name?: string;
    user_id?: string;
    guests: boolean;
    admins?: boolean;
    locked: boolean;
    not_user_type: string[];
  }) => ({
    name: query.name,
    userId: query.user_id,
    guests: query.guests ? undefined : false,
    admins: query.admins,
    locked: query.locked ? undefined : false,
    notTypes: query.not_user_type,
  });
  return [
    route(
      {
        operationId: 'listUsersV2',
        method: 'GET',
        path: '/_server/admin/v2/users',
        auth: 'admin',
        query: Type.Object({ ...parameters, deactivated: Type.Boolean({ default: false }) }),
        response,
      },
      ({ query, requester }) => {
        const filter = { ...filterOf(query), deactivated: query.deactivated ? undefined : false };
        return list(requester.userId, filter, query);
      },
    ),
    route(
      {
        operationId: 'listUsersV3',
        method: 'GET',
        path: '/_server/admin/v3/users',
        auth: 'admin',
        query: Type.Object({ ...parameters, deactivated: Type.Optional(Type.Boolean()) }),
        response,
      },
      ({ query, requester }) =>
        list(requester.userId, { ...filterOf(query), deactivated: query.deactivated }, query),
    ),
  ];
}

const parsed = (json: string | null) => (json === null ? null : (JSON.parse(json) as string));

const toResponse = (user: ListedUser) => ({
  name: user.user_id,
  is_guest: user.is_guest === 1,
  admin: user.is_admin === 1,
  user_type: user.user_type,
  deactivated: user.is_deactivated === 1,
  erased: user.is_erased === 1,
  shadow_banned: user.is_shadow_banned === 1,
  displayname: parsed(user.displayname),
  avatar_url: parsed(user.avatar_url),
  creation_ts: user.created_at,
  last_seen_ts: user.last_seen_ts <= 0 ? null : user.last_seen_ts,
  locked: user.is_locked === 1,
  suspended: user.is_suspended === 1,
});
