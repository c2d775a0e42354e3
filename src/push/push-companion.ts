import type { AccountLifecycle } from '../accounts/index.ts';
import { writerFor } from '../kernel/database/index.ts';
import type { PushTables } from './tables.ts';

/** Drops what is unread of a user whose account ends, and their rules when everything is to be erased. */
export const pushCompanion: AccountLifecycle = {
  async deactivated(anyWriter, _publish, { userId, erase }) {
    const writer = writerFor<PushTables>(anyWriter);
    await writer.deleteFrom('unread_tallies').where('user_id', '=', userId).execute();
    if (erase) await writer.deleteFrom('push_rules').where('user_id', '=', userId).execute();
  },
};
