import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { decodePosition } from '../../kernel/streams/index.ts';
import type { DeviceLists } from './device-lists.ts';

/** The endpoint with the changes of device lists. Source: client-server API, "Key management API". */
export function deviceListRoutes(deviceLists: DeviceLists): Route[] {
  return [
    route(
      {
        operationId: 'getKeysChanges',
        method: 'GET',
        path: ['/_proto/client/v3/keys/changes', '/_proto/client/r0/keys/changes'],
        auth: 'user',
        query: Type.Object({ from: Type.String(), to: Type.String() }),
        response: Type.Object({ changed: Type.Array(Type.String()), left: Type.Array(Type.String()) }),
      },
      ({ requester, query: { from, to } }) =>
        deviceLists.changes(requester.userId, decodePosition(from), decodePosition(to)),
    ),
  ];
}
