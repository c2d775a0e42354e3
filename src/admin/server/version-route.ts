import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { ownSoftware } from '../../kernel/outbound/index.ts';

/** Returns the version of this software. */
export const versionRoute: Route = route(
  {
    operationId: 'getServerVersion',
    method: 'GET',
    path: '/_server/admin/v1/server_version',
    auth: 'admin',
    response: Type.Object({ server_version: Type.String() }),
  },
  () => ({ server_version: ownSoftware().version }),
);
