import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { ownSoftware } from '../../kernel/outbound/index.ts';

/**
 * Serves the version of this software. Needs no access token, because tools show the version before a login. The version
 * is no secret: `GET /federation/v1/version` needs no access token either.
 */
export const versionRoute: Route = route(
  {
    operationId: 'getServerVersion',
    method: 'GET',
    path: '/_server/admin/v1/server_version',
    auth: 'none',
    response: Type.Object({ server_version: Type.String() }),
  },
  () => ({ server_version: ownSoftware().version }),
);
