import { Type } from 'typebox';
import { type Requester, type Route, route } from '../kernel/http/index.ts';
import { forbidden, type JsonObject } from '../protocol/index.ts';
import type { Filters } from './filters.ts';

const paths = {
  define: ['/_proto/client/v3/user/:userId/filter', '/_proto/client/r0/user/:userId/filter'],
  get: ['/_proto/client/v3/user/:userId/filter/:filterId', '/_proto/client/r0/user/:userId/filter/:filterId'],
} as const;

/** Maximum bytes of a request body. */
const bodyLimit = 256 * 1024;

const anyObject = Type.Object({}, { additionalProperties: true });

/** Returns the routes that store and read filters. Source: client-server API, "Filtering". */
export function filterRoutes(filters: Filters): Route[] {
  return [
    route(
      {
        operationId: 'defineFilter',
        method: 'POST',
        path: paths.define,
        auth: 'user',
        body: anyObject,
        bodyLimit,
        response: Type.Object({ filter_id: Type.String() }),
      },
      async ({ params: { userId }, requester, body }) => {
        checkOwner(requester, userId);
        return { filter_id: await filters.define(userId, body as JsonObject) };
      },
    ),
    route(
      { operationId: 'getFilter', method: 'GET', path: paths.get, auth: 'user', response: anyObject },
      ({ params: { userId, filterId }, requester }) => {
        checkOwner(requester, userId);
        return filters.get(userId, filterId);
      },
    ),
  ];
}

function checkOwner(requester: Requester, userId: string): void {
  if (requester.userId !== userId) throw forbidden("You cannot access another user's filters");
}
