import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';
import type { JsonValue } from '../protocol/index.ts';
import type { OnBind } from './on-bind.ts';

/**
 * Receives notifications of identity servers, whose requests are not signed.
 * Source: server-server API, "Third-party invites".
 */
export function onBindRoute(onBind: OnBind): Route {
  return route(
    {
      operationId: 'onBindThirdPartyIdentifier',
      method: 'PUT',
      path: '/_proto/federation/v1/3pid/onbind',
      auth: 'none',
      body: Type.Object({
        medium: Type.String(),
        address: Type.String(),
        mxid: Type.String(),
        invites: Type.Array(Type.Unsafe<JsonValue>(Type.Unknown()), { maxItems: 1_000 }),
      }),
      response: Type.Object({}),
    },
    async ({ body: { mxid, invites } }) => {
      await onBind.bound(mxid, invites);
      return {};
    },
  );
}
