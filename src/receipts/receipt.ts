/** `m.read.private` is for its user's eyes only. */
export type ReceiptType = 'm.read' | 'm.read.private';

/** A user has read a room, or a thread of it, up to an event. */
export interface Receipt {
  readonly roomId: string;
  readonly userId: string;
  readonly type: ReceiptType;
  /** `main`, the id of a thread's root, or `undefined` for the whole room. */
  readonly threadId: string | undefined;
  readonly eventId: string;
  /** Where the event is on the stream of rooms; `undefined` while this server does not know it. */
  readonly stream: number | undefined;
  /** Milliseconds since the epoch. */
  readonly ts: number;
}

/** A receipt with its own place on the stream of receipts. */
export interface PlacedReceipt extends Receipt {
  readonly position: number;
}

/** What there is one receipt for in a room. */
export const receiptKey = ({ userId, type, threadId = '' }: Receipt): string =>
  `${userId}\0${type}\0${threadId}`;
