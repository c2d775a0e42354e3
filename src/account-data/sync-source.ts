import type { SyncSource } from '../sync-contract/index.ts';
import type { AccountData } from './account-data.ts';

/** Account data in syncs. Source: client-server API, "Client Config"; MSC3959 (sliding sync). */
export const accountDataSyncSource = (accountData: AccountData): SyncSource => ({
  name: 'account data',
  follow(feeds) {
    const { accountDataStream } = accountData;
    feeds.followUsers(
      accountDataStream,
      ({ userId }) => [userId],
      ({ roomId }) => roomId,
    );
  },
  accountData: {
    hasRooms: true,
    isSetByClients: true,
    since: (userId, { after, upTo }) => accountData.changesSince(userId, after, upTo),
    all: (userId) => accountData.all(userId),
  },
});
