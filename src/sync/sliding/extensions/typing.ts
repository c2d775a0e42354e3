import type { Ignoring } from '../../../room-engine/index.ts';
import type { Typing } from '../../../typing/index.ts';
import type { InRooms } from '../request.ts';
import { type ExtensionAnswer, type ExtensionContext, roomsFor, roomsText } from './extension.ts';

/** Who is typing in the rooms of the answer, but for those whom the user ignores. Source: MSC3961. */
export async function typingExtension(
  { typing, ignoring }: { readonly typing: Typing; readonly ignoring: Ignoring },
  { userId, rooms }: ExtensionContext,
  request: InRooms,
): Promise<ExtensionAnswer> {
  const ignored = await ignoring.of(userId);
  const entries = new Map<string, string>();
  for (const { request: asked } of roomsFor(rooms, request)) {
    const { room, after } = asked;
    if (room.membership !== 'join') continue;
    const userIds = typing.inRoom(room.roomId, ignored);
    const isTold = after === undefined ? userIds.length > 0 : typing.changedSince(room.roomId, after);
    if (isTold)
      entries.set(room.roomId, JSON.stringify({ type: 'm.typing', content: { user_ids: userIds } }));
  }
  return { name: 'typing', text: `{"rooms":${roomsText(entries)}}`, isNews: entries.size > 0 };
}
