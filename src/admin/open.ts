import type { AccountData } from '../account-data/index.ts';
import type { AccountsSlice, checkUserType } from '../accounts/index.ts';
import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Profiles } from '../profiles/index.ts';
import type { RoomWriter } from '../room-engine/index.ts';
import { PageCursors } from './paging/page-cursors.ts';
import { versionRoute } from './server/version-route.ts';
import { accountActionRoutes } from './users/account-action-routes.ts';
import { deviceRoutes } from './users/device-routes.ts';
import { LocalUsers } from './users/local-user.ts';
import { userDataRoutes } from './users/user-data-routes.ts';
import { UserEditor } from './users/user-editor.ts';
import { UserList } from './users/user-list.ts';
import { userListRoutes } from './users/user-list-routes.ts';
import { userRoutes } from './users/user-routes.ts';

export interface AdminDeps {
  readonly database: Database;
  readonly caches: CacheRegistry;
  readonly serverName: string;
  readonly accounts: AccountsSlice;
  readonly profiles: Profiles;
  readonly accountData: AccountData;
  readonly engine: RoomWriter;
  readonly options: Parameters<typeof checkUserType>[1];
}

/** Opens the admin API. */
export function openAdmin(deps: AdminDeps): { readonly routes: readonly Route[] } {
  const cursors = new PageCursors(deps.caches);
  return { routes: [versionRoute, ...routesOfUsers(deps, cursors)] };
}

function routesOfUsers(deps: AdminDeps, cursors: PageCursors): Route[] {
  const { profiles, options } = deps;
  const { accounts, devices } = deps.accounts;
  const users = new LocalUsers(accounts, deps.serverName);
  const list = new UserList(deps);
  const editor = new UserEditor({ ...deps.accounts, accounts, profiles, users, options });
  return [
    ...userListRoutes(list, cursors),
    ...userRoutes({ users, editor, profiles, list }),
    ...accountActionRoutes({ ...deps.accounts, accounts, users }),
    ...deviceRoutes(devices, users),
    ...userDataRoutes({ ...deps, users }),
  ];
}
