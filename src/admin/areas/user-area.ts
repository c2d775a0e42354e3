import type { AccountData } from '../../account-data/index.ts';
import type { checkUserType } from '../../accounts/index.ts';
import type { Route } from '../../kernel/http/index.ts';
import type { Profiles } from '../../profiles/index.ts';
import type { Pushers } from '../../pushers/index.ts';
import type { UserRedaction } from '../../rooms/index.ts';
import type { ExternalIds } from '../../sso/index.ts';
import type { AccountAddresses } from '../../third-party-ids/index.ts';
import { AccountValidity } from '../account-validity/account-validity.ts';
import { accountValidityRoute } from '../account-validity/account-validity-route.ts';
import { accountActionRoutes } from '../users/account-action-routes.ts';
import { type CrossSigningReplacement, crossSigningRoute } from '../users/cross-signing-route.ts';
import { deviceRoutes } from '../users/device-routes.ts';
import { experimentalFeatureRoutes } from '../users/experimental-feature-routes.ts';
import { membershipCountRoutes } from '../users/membership-count-routes.ts';
import { MembershipCounts } from '../users/membership-counts.ts';
import { redactionRoutes } from '../users/redaction-routes.ts';
import { userDataRoutes } from '../users/user-data-routes.ts';
import { UserEditor } from '../users/user-editor.ts';
import { UserList } from '../users/user-list.ts';
import { userListRoutes } from '../users/user-list-routes.ts';
import { userRoomsRoute } from '../users/user-rooms-route.ts';
import { userRoutes } from '../users/user-routes.ts';
import type { AreaDeps } from './area-deps.ts';

/** The services that only the area of users needs. */
export interface UserServices {
  readonly profiles: Profiles;
  readonly accountData: AccountData;
  readonly pushers: Pushers;
  /** Absent on a server without third-party identifiers. */
  readonly addresses: AccountAddresses | undefined;
  /** Absent in a server without single sign-on. */
  readonly externalIds: ExternalIds | undefined;
  readonly crossSigning: CrossSigningReplacement;
  readonly userRedaction: UserRedaction;
  readonly options: Parameters<typeof checkUserType>[1];
}

/** Returns the routes about users. */
export function routesOfUsers(deps: AreaDeps, services: UserServices): Route[] {
  const { database, rooms, users, cursors, caughtUp } = deps;
  const { accounts, consents, devices, lastSeen } = deps.accounts;
  const { profiles, addresses, externalIds } = services;
  const list = new UserList({ database, lastSeen });
  const editor = new UserEditor({ ...deps.accounts, ...services, accounts, users });
  return [
    ...userListRoutes(list, cursors),
    ...userRoutes({ database, users, editor, profiles, list, addresses, externalIds, consents }),
    ...accountActionRoutes({ ...deps.accounts, accounts, users }),
    ...deviceRoutes(devices, users),
    ...experimentalFeatureRoutes(users),
    accountValidityRoute(new AccountValidity({ ...deps, accounts }), users),
    crossSigningRoute(services.crossSigning, users),
    ...redactionRoutes({ redaction: services.userRedaction, engine: rooms.engine, users }),
    ...membershipCountRoutes(new MembershipCounts({ database }), users),
    ...userDataRoutes({ ...services, engine: rooms.engine, users }),
    userRoomsRoute({ database, engine: rooms.engine, cursors, caughtUp }),
  ];
}
