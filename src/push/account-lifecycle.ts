import type { AccountLifecycle } from '../accounts/index.ts';
import { writerFor } from '../kernel/database/index.ts';
import type { PushTables } from './tables.ts';

/** Deletes the unread tallies of a deactivated user, and their push rules when the account is erased. */
export const pushAccountLifecycle: AccountLifecycle = {
  async deactivated(anyWriter, _publish, { userId, erase }) {
    const writer = writerFor<PushTables>(anyWriter);
    await writer.deleteFrom('unread_tallies').where('user_id', '=', userId).execute();
    if (erase) await writer.deleteFrom('push_rules').where('user_id', '=', userId).execute();
  },
};
