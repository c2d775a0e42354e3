import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { UserDirectory } from './user-directory.ts';

/** Number of results when the request sets no limit. */
const defaultLimit = 10;

/** Maximum number of results. */
const maxResults = 50;

/** Maximum characters of a search term: the longest user id or display name. */
const maxTermLength = 1_000;

/** Returns the route that searches users. Source: client-server API, "User directory". */
export function userDirectoryRoutes(directory: UserDirectory): Route[] {
  return [
    route(
      {
        operationId: 'searchUserDirectory',
        method: 'POST',
        path: ['/_proto/client/v3/user_directory/search', '/_proto/client/r0/user_directory/search'],
        auth: 'user',
        body: Type.Object({
          search_term: Type.String({ maxLength: maxTermLength }),
          limit: Type.Optional(Type.Integer({ minimum: 0 })),
        }),
      },
      async ({ requester: { userId }, body: { search_term: term, limit = defaultLimit } }) => {
        const wanted = Math.min(limit, maxResults);
        const { results, limited } = await directory.search({ userId, term, limit: wanted });
        return {
          limited,
          results: results.map((user) => ({
            user_id: user.userId,
            ...(user.displayName === undefined ? undefined : { display_name: user.displayName }),
            ...(user.avatarUrl === undefined ? undefined : { avatar_url: user.avatarUrl }),
          })),
        };
      },
    ),
  ];
}
