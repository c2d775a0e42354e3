import type { ReceiptContent, Receipts } from '../../../receipts/index.ts';
import { RoomPart } from '../../feeds/feed.ts';
import { sentUpTo } from '../connections/sent-room.ts';
import type { InRooms } from '../request.ts';
import type { RelevantRoom } from '../rooms/relevant-room.ts';
import { type ExtensionAnswer, type ExtensionContext, roomsFor, roomsText } from './extension.ts';

/** How far people have read the rooms of the answer. Source: MSC3960. */
export async function receiptsExtension(
  receipts: Receipts,
  context: ExtensionContext,
  request: InRooms,
): Promise<ExtensionAnswer> {
  const entries = new Map<string, string>();
  const covered = roomsFor(context.rooms, request).filter((room) => room.request.room.membership === 'join');
  const unknown = covered.filter((room) => afterOf(context, room) === undefined);
  const all = await receipts.contentsOfRooms(
    unknown.map(({ request: { room } }) => room.roomId),
    context.userId,
  );
  for (const room of covered) {
    const content = await contentFor(receipts, all, context, room);
    if (!content || Object.keys(content).length === 0) continue;
    entries.set(room.request.room.roomId, JSON.stringify({ type: 'm.receipt', content }));
  }
  return { name: 'receipts', text: `{"rooms":${roomsText(entries)}}`, isNews: entries.size > 0, covered };
}

/** Up to where the client has been told of receipts in a room; `undefined`: it gets all. */
const afterOf = ({ since }: ExtensionContext, { request, result }: RelevantRoom) =>
  result.isInitial ? undefined : sentUpTo(request.sent?.receipts ?? 'never', since);

/** A room has one event at most: of two receipts of a user for the same event only the newest has a place in it. */
async function contentFor(
  receipts: Receipts,
  all: ReadonlyMap<string, readonly ReceiptContent[]>,
  context: ExtensionContext,
  relevant: RelevantRoom,
): Promise<ReceiptContent | undefined> {
  const { userId, upTo } = context;
  const { request, result, parts } = relevant;
  const { room, sent } = request;
  const after = afterOf(context, relevant);
  if (after === undefined) {
    const [content] = all.get(room.roomId) ?? [];
    return content && ofInterest(content, userId, result.eventIds);
  }
  if (sent?.receipts === 'live' && !(parts & RoomPart.receipts)) return undefined;
  return (await receipts.contentsSince(room.roomId, after, upTo, userId))[0];
}

/** Of a room that is new to the client: the receipts for what it is shown, and the user's own. */
function ofInterest(content: ReceiptContent, userId: string, eventIds: readonly string[]): ReceiptContent {
  const shown = new Set(eventIds);
  const entries = Object.entries(content).map(([eventId, types]): [string, ReceiptContent[string]] => {
    if (shown.has(eventId)) return [eventId, types];
    const own = Object.entries(types).flatMap(([type, users]) => {
      const receipt = users[userId];
      return receipt ? [[type, { [userId]: receipt }] as const] : [];
    });
    return [eventId, Object.fromEntries(own)];
  });
  return Object.fromEntries(entries.filter(([, types]) => Object.keys(types).length > 0));
}
