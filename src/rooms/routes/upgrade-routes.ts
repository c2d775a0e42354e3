import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { RoomUpgrade } from '../upgrade/upgrade-room.ts';
import { clientPath } from './paths.ts';

/** The endpoint that upgrades a room. Source: client-server API, "Room Upgrades". */
export function upgradeRoutes(upgrades: RoomUpgrade): Route[] {
  return [
    route(
      {
        operationId: 'upgradeRoom',
        method: 'POST',
        path: clientPath('/rooms/:roomId/upgrade'),
        auth: 'user',
        refuseSuspended: true,
        body: Type.Object({
          new_version: Type.String(),
          additional_creators: Type.Optional(Type.Array(Type.String(), { maxItems: 100 })),
        }),
        response: Type.Object({ replacement_room: Type.String() }),
      },
      async ({ params, body, requester }) => ({
        replacement_room: await upgrades.upgrade(requester, params.roomId, body),
      }),
    ),
  ];
}
