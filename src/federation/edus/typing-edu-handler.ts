import { isRoomId, type JsonObject } from '../../protocol/index.ts';
import type { RoomReader, ServerAcls } from '../../room-engine/index.ts';
import type { Typing } from '../../typing/index.ts';
import type { EduHandler } from './edu-handlers.ts';
import type { EduRates } from './edu-rates.ts';
import { isEduUserOf, mayBeJoined } from './edu-users.ts';

export interface TypingEduDeps {
  readonly engine: Pick<RoomReader, 'heads'>;
  readonly serverAcls: Pick<ServerAcls, 'allows'>;
  readonly typing: Pick<Typing, 'set'>;
  readonly rates: EduRates;
}

/**
 * Timeout of a remote typing notification in milliseconds; the user's server repeats the notification while the user
 * types.
 */
const typingTimeout = 60_000;

/** Returns the handler of `m.typing` EDUs of remote users. Source: server-server API, "Typing Notifications". */
export function typingHandler({ engine, serverAcls, typing, rates }: TypingEduDeps): EduHandler {
  return async (origin, { room_id: roomId, user_id: userId, typing: isTyping }: JsonObject) => {
    if (!isEduUserOf(origin, userId)) return;
    if (!isRoomId(roomId) || typeof isTyping !== 'boolean' || !rates.allow(origin)) return;
    const head = await engine.heads.get(roomId);
    if (!head || !mayBeJoined(head, userId) || !(await serverAcls.allows(head, origin))) return;
    typing.set(userId, roomId, isTyping, typingTimeout);
  };
}
