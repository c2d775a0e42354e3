import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { Profiles } from '../../profiles/index.ts';
import { forbidden, invalidParam, isUserId, notFound, serverOfUser } from '../../protocol/index.ts';

export interface ProfileQueryDeps {
  readonly profiles: Profiles;
  readonly serverName: string;
  readonly options: { readonly allow_profile_lookup_over_federation: boolean };
}

/**
 * Profile queries, and a 404 for unknown query types. Source: server-server API, "Querying for information",
 * `GET /_matrix/federation/v1/query/profile`.
 */
export function profileQueryRoutes({ profiles, serverName, options }: ProfileQueryDeps): Route[] {
  return [
    route(
      {
        operationId: 'queryProfile',
        method: 'GET',
        path: '/_proto/federation/v1/query/profile',
        auth: 'server',
        query: Type.Object({ user_id: Type.String(), field: Type.Optional(Type.String()) }),
      },
      ({ query: { user_id: userId, field } }) => {
        if (!options.allow_profile_lookup_over_federation) {
          throw forbidden('This server does not answer profile queries of other servers');
        }
        if (!isUserId(userId) || serverOfUser(userId) !== serverName) {
          throw invalidParam('The user is not a user of this server');
        }
        return profiles.get(userId, field);
      },
    ),
    route(
      {
        operationId: 'queryInfo',
        method: 'GET',
        path: '/_proto/federation/v1/query/:queryType',
        auth: 'server',
      },
      () => {
        throw notFound('Unknown query type');
      },
    ),
  ];
}
