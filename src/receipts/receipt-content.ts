import { type PlacedReceipt, receiptKey } from './receipt.ts';

/** The content of an `m.receipt` event: event id to receipt type to user id to the receipt. */
export interface ReceiptContent {
  [eventId: string]: { [type: string]: { [userId: string]: { ts: number; thread_id?: string } } };
}

/**
 * Returns receipts as the contents of `m.receipt` events, usually one: a content has one entry for each
 * event, type and user, so several are needed when a user has read several threads up to the same event.
 * Source: client-server API, `m.receipt`.
 * @param receipts newest first; for the same user, type and thread only the newest counts
 */
export function receiptContents(receipts: Iterable<PlacedReceipt>): ReceiptContent[] {
  const contents: ReceiptContent[] = [];
  const addedKeys = new Set<string>();
  for (const receipt of receipts) {
    const key = receiptKey(receipt);
    if (addedKeys.has(key)) continue;
    addedKeys.add(key);
    if (!contents.some((content) => addReceipt(content, receipt))) {
      const content: ReceiptContent = {};
      addReceipt(content, receipt);
      contents.push(content);
    }
  }
  return contents;
}

/** Adds a receipt, unless its event, type and user have an entry. @returns whether it was added */
function addReceipt(
  content: ReceiptContent,
  { eventId, type, userId, threadId, ts }: PlacedReceipt,
): boolean {
  content[eventId] ??= {};
  content[eventId][type] ??= {};
  const users = content[eventId][type];
  if (users[userId]) return false;
  users[userId] = { ts, ...(threadId === undefined ? undefined : { thread_id: threadId }) };
  return true;
}
