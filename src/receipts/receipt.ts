/** `m.read.private` is shown to its user only. */
export type ReceiptType = 'm.read' | 'm.read.private';

/** States that a user has read a room, or a thread of the room, up to an event. */
export interface Receipt {
  readonly roomId: string;
  readonly userId: string;
  readonly type: ReceiptType;
  /** `main`, the id of a thread's root, or `undefined` for the whole room. */
  readonly threadId: string | undefined;
  readonly eventId: string;
  /** The position of the event on the stream of rooms; `undefined` while the event is unknown here. */
  readonly stream: number | undefined;
  /** Milliseconds since the epoch. */
  readonly ts: number;
}

/** A receipt with its own position on the stream of receipts. */
export interface PlacedReceipt extends Receipt {
  readonly position: number;
}

/** Identifies the receipt that a new receipt replaces: a room has one receipt for each user, type and thread. */
export const receiptKey = ({ userId, type, threadId = '' }: Receipt): string =>
  `${userId}\0${type}\0${threadId}`;
