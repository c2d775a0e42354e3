import type { Receipts } from '../../../receipts/index.ts';
import { RoomPart } from '../../feeds/feed.ts';
import { sentUpTo } from '../connections/sent-room.ts';
import type { InRooms } from '../request.ts';
import type { RelevantRoom } from '../rooms/relevant-room.ts';
import { type ExtensionAnswer, type ExtensionContext, roomsFor, roomsText } from './extension.ts';

/** The content of an `m.receipt` event. */
type Content = Awaited<ReturnType<Receipts['contentsAll']>>[number];

/** How far people have read the rooms of the answer. Source: MSC3960. */
export async function receiptsExtension(
  receipts: Receipts,
  context: ExtensionContext,
  request: InRooms,
): Promise<ExtensionAnswer> {
  const entries = new Map<string, string>();
  const covered = roomsFor(context.rooms, request).filter((room) => room.request.room.membership === 'join');
  for (const room of covered) {
    const content = await contentFor(receipts, context, room);
    if (!content || Object.keys(content).length === 0) continue;
    entries.set(room.request.room.roomId, JSON.stringify({ type: 'm.receipt', content }));
  }
  return { name: 'receipts', text: `{"rooms":${roomsText(entries)}}`, isNews: entries.size > 0, covered };
}

/** A room has one event at most: of two receipts of a user for the same event only the newest has a place in it. */
async function contentFor(
  receipts: Receipts,
  { userId, since, upTo }: ExtensionContext,
  { request, result, parts }: RelevantRoom,
): Promise<Content | undefined> {
  const { room, sent } = request;
  const after = result.isInitial ? undefined : sentUpTo(sent?.receipts ?? 'never', since);
  if (after === undefined) {
    const [content] = await receipts.contentsAll(room.roomId, userId);
    return content && ofInterest(content, userId, result.eventIds);
  }
  if (sent?.receipts === 'live' && !(parts & RoomPart.receipts)) return undefined;
  return (await receipts.contentsSince(room.roomId, after, upTo, userId))[0];
}

/** Of a room that is new to the client: the receipts for what it is shown, and the user's own. */
function ofInterest(content: Content, userId: string, eventIds: readonly string[]): Content {
  const shown = new Set(eventIds);
  const entries = Object.entries(content).map(([eventId, types]): [string, Content[string]] => {
    if (shown.has(eventId)) return [eventId, types];
    const own = Object.entries(types).flatMap(([type, users]) => {
      const receipt = users[userId];
      return receipt ? [[type, { [userId]: receipt }] as const] : [];
    });
    return [eventId, Object.fromEntries(own)];
  });
  return Object.fromEntries(entries.filter(([, types]) => Object.keys(types).length > 0));
}
