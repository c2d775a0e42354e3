import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';
import { forbidden } from '../protocol/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import type { Typing } from './typing.ts';

/** The timeout, in milliseconds, when the client sends none. */
const defaultTimeout = 30_000;

const path = '/rooms/:roomId/typing/:userId';

/** Returns the route that sets typing notifications. Source: client-server API, "Typing Notifications". */
export function typingRoutes(typing: Typing, engine: RoomReader): Route[] {
  return [
    route(
      {
        operationId: 'setTyping',
        method: 'PUT',
        path: [`/_proto/client/v3${path}`, `/_proto/client/r0${path}`],
        auth: 'user',
        body: Type.Object({ typing: Type.Boolean(), timeout: Type.Optional(Type.Integer()) }),
        response: Type.Object({}),
      },
      async ({ params: { roomId, userId }, requester, body }) => {
        if (userId !== requester.userId) throw forbidden('You cannot set the typing state of another user');
        const head = await engine.heads.get(roomId);
        if (head?.membership(userId) !== 'join') throw forbidden('You are not in this room');
        if (requester.isShadowBanned) return {};
        typing.set(userId, roomId, body.typing, body.timeout ?? defaultTimeout);
        return {};
      },
    ),
  ];
}
