import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';

/**
 * Client-server API, "Third-party networks". Protocols belong to application services, of which this server runs none yet.
 */
export function thirdPartyNetworkRoutes(): Route[] {
  return [
    route(
      {
        operationId: 'getProtocols',
        method: 'GET',
        path: ['/_proto/client/v3/thirdparty/protocols', '/_proto/client/r0/thirdparty/protocols'],
        auth: 'user',
        response: Type.Record(Type.String(), Type.Object({})),
      },
      () => ({}),
    ),
  ];
}
