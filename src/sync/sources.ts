import type { AccountData } from '../account-data/index.ts';
import type { PresenceEvents } from '../presence/index.ts';
import type { PushRules, Unread } from '../push/index.ts';
import type { Receipts } from '../receipts/index.ts';
import type { Typing } from '../typing/index.ts';

/** Where a sync finds what other slices contribute. */
export interface SyncSources {
  readonly receipts: Receipts;
  readonly typing: Typing;
  readonly accountData: AccountData;
  readonly pushRules: PushRules;
  readonly unread: Unread;
  readonly presence: PresenceEvents;
}
