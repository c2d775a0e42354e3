import type { AccountData } from '../account-data/index.ts';
import type { Receipts } from '../receipts/index.ts';
import type { Typing } from '../typing/index.ts';

/** Where a sync finds what other slices contribute. */
export interface SyncSources {
  readonly receipts: Receipts;
  readonly typing: Typing;
  readonly accountData: AccountData;
  readonly unread: UnreadSource;
}

/** Counts of what a user has not read. */
export interface UnreadSource {
  /** @param upTo the position on the streams up to which events count */
  counts(userId: string, roomId: string, upTo: number): Promise<UnreadCounts>;
}

export interface UnreadCounts {
  readonly notification_count: number;
  readonly highlight_count: number;
  /** By the root event of the thread. */
  readonly threads: ReadonlyMap<string, { notification_count: number; highlight_count: number }>;
}
