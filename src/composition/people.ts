import {
  AccountData,
  accountDataRoutes,
  IgnoredUsers,
  InvitePermissions,
  Tags,
  tagRoutes,
} from '../account-data/index.ts';
import {
  type AccountLifecycle,
  type AccountsSlice,
  accountRoutes,
  assembleAccounts,
  isFirstAccount,
  limitOverrideRoutes,
} from '../accounts/index.ts';
import { capabilityRoutes, clientWellKnown } from '../capabilities/index.ts';
import { maxScheduled } from '../delayed-events/index.ts';
import { deviceRoutes } from '../devices/index.ts';
import { UserIndex } from '../directory/index.ts';
import { DeviceKeyChanges } from '../e2ee/index.ts';
import { Filters, filterRoutes } from '../filters/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { OwnedRows } from '../kernel/slices/index.ts';
import {
  type AvatarFiles,
  Profiles,
  profileRoutes,
  type RemoteProfiles,
  type RoomSharing,
} from '../profiles/index.ts';
import { PushRules } from '../push/index.ts';
import { ErasedUsers } from '../room-engine/index.ts';
import { AccountMemberships, AutoJoin } from '../rooms/index.ts';
import { DepartedUsers, type NoticesUser, noticesUser } from '../server-notices/index.ts';
import { ThreadSubscriptions } from '../thread-subscriptions/index.ts';
import { MessageQueues } from '../to-device/index.ts';
import type { Kernel } from './kernel.ts';
import type { Shutdown } from './shutdown.ts';
import { slices } from './slices.ts';

/** The slices about users (tier 1). */
export interface People {
  readonly accounts: AccountsSlice;
  readonly profiles: Profiles;
  readonly accountData: AccountData;
  readonly tags: Tags;
  readonly ignoredUsers: IgnoredUsers;
  readonly invitePermissions: InvitePermissions;
  readonly filters: Filters;
  readonly pushRules: PushRules;
  /** Updates memberships when accounts and profiles change. */
  readonly accountMemberships: AccountMemberships;
  readonly erasedUsers: ErasedUsers;
  readonly autoJoin: AutoJoin;
  /** Publishes changes of one-time keys and fallback keys. */
  readonly keyChanges: DeviceKeyChanges;
  readonly messageQueues: MessageQueues;
  readonly threadSubscriptions: ThreadSubscriptions;
  /** Feeds the user directory with changes of accounts and profiles. */
  readonly userIndex: UserIndex;
  /** The user who sends server notices; absent when notices are disabled. */
  readonly notices: NoticesUser | undefined;
  /** Closes the server notice rooms of deactivated users. */
  readonly departedUsers: DepartedUsers;
}

/** Opens accounts and what is stored for them. */
export function startPeople(
  kernel: Kernel,
  shutdown: Shutdown,
  remoteProfiles?: RemoteProfiles,
  avatarFiles?: AvatarFiles,
): People {
  const { configuration, serverName } = kernel;
  const accountMemberships = new AccountMemberships(kernel.jobs, kernel.clock);
  const autoJoin = new AutoJoin({ ...kernel, options: configuration.rooms, isFirst: isFirstAccount });
  const userIndex = new UserIndex(kernel);
  const keyChanges = new DeviceKeyChanges();
  const messageQueues = new MessageQueues(kernel.database);
  const threadSubscriptions = new ThreadSubscriptions(kernel);
  const pushRules = new PushRules(kernel);
  const accountData = new AccountData({
    ...kernel,
    computed: new Map([['m.push_rules', (userId) => pushRules.content(userId)]]),
  });
  const ignoredUsers = new IgnoredUsers(accountData);
  const { server_notices: noticeOptions } = configuration.serverNotices;
  const notices = noticeOptions === null ? undefined : noticesUser(noticeOptions, serverName);
  const isServer = (userId: string) => userId === notices?.userId;
  const departedUsers = new DepartedUsers(kernel);
  const filters = new Filters(kernel);
  const profiles = new Profiles(
    {
      ...kernel,
      accounts: () => accounts.accounts,
      remote: remoteProfiles,
      serverUserProfile: (userId) => (isServer(userId) ? notices?.profile : undefined),
      avatarFiles,
      onChange: async (writer, userId) => {
        await accountMemberships.profileChanged(writer, userId);
        await userIndex.profileChanged(writer, userId);
      },
      settled: (userId) => accountMemberships.profilePropagated(userId),
    },
    { ...configuration.profiles, server_name: serverName },
  );
  const erasedUsers = new ErasedUsers(kernel.database);
  const departure: AccountLifecycle = {
    deactivated: (writer, _publish, { userId }) => accountMemberships.accountDeactivated(writer, userId),
    settled: (userId) => accountMemberships.allRoomsLeft(userId),
  };
  const ownedRows = new OwnedRows(slices);
  const accounts = assembleAccounts(
    { ...kernel, log: kernel.namedLog('accounts'), limits: limitsOf(kernel) },
    { ...configuration.accounts, ...configuration.devices, server_name: serverName },
    {
      deviceCleanups: [keyChanges, ownedRows],
      lifecycleHooks: [profiles, ownedRows, departure, erasedUsers, userIndex, autoJoin, departedUsers],
      reservations: { isReservedFrom: isServer },
      wellKnown: clientWellKnown({ ...configuration.accounts, ...configuration.server }),
    },
  );
  accounts.housekeeping.register(kernel.jobs);
  shutdown.add('accounts', () => accounts.lastSeen.flush());
  return {
    accounts,
    profiles,
    accountData,
    tags: new Tags(accountData),
    ignoredUsers,
    invitePermissions: new InvitePermissions(accountData, ignoredUsers, isServer),
    filters,
    pushRules,
    accountMemberships,
    erasedUsers,
    autoJoin,
    keyChanges,
    messageQueues,
    threadSubscriptions,
    userIndex,
    notices,
    departedUsers,
  };
}

function limitsOf({ configuration, limiter }: Kernel) {
  const { rc_registration, rc_login } = configuration.rateLimits;
  return {
    registration: limiter(rc_registration),
    login: {
      address: limiter(rc_login.address),
      account: limiter(rc_login.account),
      failedAttempts: limiter(rc_login.failed_attempts),
    },
  };
}

/** @param rooms answers whether two users share a room */
export function peopleRoutes(
  { configuration, limitOverrides, serverName }: Kernel,
  people: People,
  rooms: RoomSharing,
): Route[] {
  const { accounts, profiles, accountData, tags, filters } = people;
  return [
    ...accountRoutes(accounts),
    ...limitOverrideRoutes(accounts.accounts, limitOverrides, serverName),
    ...deviceRoutes(accounts.devices, accounts.reauthenticator),
    ...profileRoutes({ profiles, rooms }, configuration.profiles),
    ...accountDataRoutes(accountData),
    ...tagRoutes(tags),
    ...filterRoutes(filters),
    ...capabilityRoutes(
      {
        served: {
          thirdPartyIdChanges: false,
          loginTokens: false,
          locking: true,
          suspension: true,
          delayedEvents: maxScheduled,
        },
      },
      {
        ...configuration.accounts,
        ...configuration.profiles,
        ...configuration.rooms,
        ...configuration.server,
      },
    ),
  ];
}
