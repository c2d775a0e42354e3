import { Receipts, type ReceiptsDeps } from './receipts.ts';
import { receiptRoutes } from './routes.ts';
import { receiptSyncSource } from './sync-source.ts';

/** Opens read receipts and read markers. */
export function openReceipts(deps: ReceiptsDeps) {
  const receipts = new Receipts(deps);
  return {
    receipts,
    routes: receiptRoutes(receipts),
    syncSources: [receiptSyncSource(receipts)],
    streams: [receipts.receiptStream],
  };
}
