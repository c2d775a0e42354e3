import { whenReady } from '../kernel/when-ready.ts';
import type { ExtensionRoom, SyncSource } from '../sync-contract/index.ts';
import type { ReceiptContent } from './receipt-content.ts';
import type { Receipts } from './receipts.ts';

const type = 'm.receipt';

/** Receipts in syncs. Source: client-server API, "Receipts"; MSC3960 (sliding sync). */
export const receiptSyncSource = (receipts: Receipts): SyncSource => ({
  name: 'receipts',
  follow: (feeds) => feeds.followRooms(receipts.receiptStream, ({ roomId }) => roomId),
  ephemeral: {
    type,
    mayHaveChanged: () => true,
    since(userId, roomId, { after, upTo }) {
      return whenReady(receipts.contentsSince(roomId, after, upTo, userId), textsOf);
    },
    async initial(userId, roomIds) {
      const contents = await receipts.contentsOfRooms(roomIds, userId);
      return new Map([...contents].map(([roomId, roomContents]) => [roomId, textsOf(roomContents)]));
    },
    extension: {
      name: 'receipts',
      inRooms: (userId, rooms, upTo) => extensionEvents(receipts, userId, rooms, upTo),
    },
  },
});

const textsOf = (contents: readonly ReceiptContent[]) =>
  contents.map((content) => JSON.stringify({ type, content }));

/**
 * Returns one `m.receipt` event for each room with receipts, by room id. Of several receipts of a user for the same
 * event, for example in different threads, only the newest is returned.
 */
async function extensionEvents(
  receipts: Receipts,
  userId: string,
  rooms: readonly ExtensionRoom[],
  upTo: number,
): Promise<Map<string, string>> {
  const newRooms = rooms.filter(({ after }) => after === undefined);
  const contentsByRoom = await receipts.contentsOfRooms(
    newRooms.map(({ roomId }) => roomId),
    userId,
  );
  const events = new Map<string, string>();
  for (const { roomId, after, mayHaveChanged, eventIds } of rooms) {
    let content: ReceiptContent | undefined;
    if (after === undefined)
      content = receiptsForNewRoom(contentsByRoom.get(roomId)?.[0] ?? {}, userId, eventIds);
    else if (mayHaveChanged) [content] = await receipts.contentsSince(roomId, after, upTo, userId);
    if (content && Object.keys(content).length > 0) events.set(roomId, JSON.stringify({ type, content }));
  }
  return events;
}

/**
 * Returns the receipts for a room that is new to the client: the receipts for the events in the response, and the
 * user's own receipts.
 */
function receiptsForNewRoom(
  content: ReceiptContent,
  userId: string,
  eventIds: readonly string[],
): ReceiptContent {
  const shown = new Set(eventIds);
  const entries = Object.entries(content).map(([eventId, types]): [string, ReceiptContent[string]] => {
    if (shown.has(eventId)) return [eventId, types];
    const ownReceipts = Object.entries(types).flatMap(([receiptType, users]) => {
      const receipt = users[userId];
      return receipt ? [[receiptType, { [userId]: receipt }] as const] : [];
    });
    return [eventId, Object.fromEntries(ownReceipts)];
  });
  return Object.fromEntries(entries.filter(([, types]) => Object.keys(types).length > 0));
}
