import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';
import { ownSoftware } from '../kernel/outbound/index.ts';

/** Serves the name and version of this software. Source: server-server API, "Server implementation". */
export function versionRoute(): Route {
  const body = { server: ownSoftware() };
  return route(
    {
      operationId: 'getVersion',
      method: 'GET',
      path: '/_proto/federation/v1/version',
      auth: 'none',
      response: Type.Object({ server: Type.Object({ name: Type.String(), version: Type.String() }) }),
    },
    () => body,
  );
}
