import { type PlacedReceipt, receiptKey } from './receipt.ts';

/** The content of an `m.receipt` event: event id to type to user id to what is known of the receipt. */
export interface ReceiptContent {
  [eventId: string]: { [type: string]: { [userId: string]: { ts: number; thread_id?: string } } };
}

/**
 * Receipts as the contents of `m.receipt` events, usually one: a content says of an event, a type and a user one thing
 * only, so a user who has read several threads up to the same event needs several.
 * Source: client-server API, `m.receipt`.
 * @param receipts newest first; of those for the same user, type and thread only the newest counts
 */
export function receiptContents(receipts: Iterable<PlacedReceipt>): ReceiptContent[] {
  const contents: ReceiptContent[] = [];
  const seen = new Set<string>();
  for (const receipt of receipts) {
    const key = receiptKey(receipt);
    if (seen.has(key)) continue;
    seen.add(key);
    if (!contents.some((content) => put(content, receipt))) {
      const content: ReceiptContent = {};
      put(content, receipt);
      contents.push(content);
    }
  }
  return contents;
}

/** @returns whether there was room for the receipt */
function put(content: ReceiptContent, { eventId, type, userId, threadId, ts }: PlacedReceipt): boolean {
  content[eventId] ??= {};
  content[eventId][type] ??= {};
  const users = content[eventId][type];
  if (users[userId]) return false;
  users[userId] = { ts, ...(threadId === undefined ? undefined : { thread_id: threadId }) };
  return true;
}
