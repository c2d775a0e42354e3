/** Read receipts and read markers: how far users have read. */
export type { FullyReadMarkers } from './fully-read.ts';
export { receiptMigrations } from './migrations.ts';
export { openReceipts } from './open.ts';
export { ReadUpTo } from './read-up-to.ts';
export type { PlacedReceipt, Receipt, ReceiptType } from './receipt.ts';
export type { ReceiptContent } from './receipt-content.ts';
export { Receipts, type ReceiptsDeps } from './receipts.ts';
export { threadIdOf } from './threads.ts';
