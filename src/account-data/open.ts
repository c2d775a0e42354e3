import type { CacheRegistry } from '../kernel/caches/index.ts';
import { AccountData, type AccountDataDeps } from './account-data.ts';
import { IgnoredUsers } from './ignored-users.ts';
import { InvitePermissions } from './invite-permissions.ts';
import { accountDataRoutes, tagRoutes } from './routes.ts';
import { accountDataSyncSource } from './sync-source.ts';
import { Tags } from './tags.ts';

/** @param isNoticesUser whether a user sends the server notices; invites of this user are always allowed */
export function openAccountData(
  { caches, ...deps }: AccountDataDeps & { readonly caches: CacheRegistry },
  isNoticesUser: (userId: string) => boolean,
) {
  const accountData = new AccountData(deps);
  const ignoredUsers = new IgnoredUsers(accountData, caches);
  const tags = new Tags(accountData);
  return {
    accountData,
    tags,
    ignoredUsers,
    invitePermissions: new InvitePermissions(accountData, caches, ignoredUsers, isNoticesUser),
    routes: [...accountDataRoutes(accountData), ...tagRoutes(tags)],
    syncSources: [accountDataSyncSource(accountData)],
    streams: [accountData.accountDataStream],
  };
}
