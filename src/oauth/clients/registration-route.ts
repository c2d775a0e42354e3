import { Type } from 'typebox';
import type { Limiter } from '../../accounts/index.ts';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { clientPaths } from '../endpoints.ts';
import { answerClient, notCached } from '../oauth-error.ts';
import type { Clients } from './clients.ts';

/** Maximum bytes of a registration request. The maximum is low because the request needs no authentication. */
const bodyLimit = 32_768;

/**
 * Registers clients. Source: RFC 7591.
 * @param limiter limits registrations by the IP address of the request
 */
export function clientRegistrationRoute(clients: Clients, limiter: Limiter): Route {
  return route(
    {
      method: 'POST',
      path: clientPaths.registration,
      auth: 'none',
      bodyLimit,
      needsBody: true,
      body: Type.Object({}),
    },
    ({ body, ip }) =>
      answerClient(async () => {
        limiter.take(ip);
        const { clientId, metadata } = await clients.register(body as JsonObject);
        return new Reply(201, { client_id: clientId, ...metadata }, notCached);
      }),
  );
}
