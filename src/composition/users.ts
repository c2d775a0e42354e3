import {
  type AccountData,
  type IgnoredUsers,
  type InvitePermissions,
  openAccountData,
  type Tags,
} from '../account-data/index.ts';
import {
  type AccountExtensions,
  AccountReader,
  type AccountsSlice,
  availabilityRate,
  challengeRate,
  combinedChecks,
  isFirstAccount,
  limitOverrideRoutes,
  loginTokenRate,
  openAccounts,
} from '../accounts/index.ts';
import type { ActiveUsers } from '../active-users/index.ts';
import { type AppserviceRegistry, ServiceLogin } from '../appservice-registry/index.ts';
import type { ServiceRequests } from '../appservices/index.ts';
import { capabilityRoutes, clientWellKnown } from '../capabilities/index.ts';
import { maxScheduled } from '../delayed-events/index.ts';
import type { DeviceCleanup } from '../devices/index.ts';
import { UserIndexJobs } from '../directory/index.ts';
import { DeviceKeyChanges, refuseIdsOfKeys } from '../e2ee/index.ts';
import { type Filters, openFilters } from '../filters/index.ts';
import type { OutboundHttp } from '../kernel/outbound/index.ts';
import { OwnedRows } from '../kernel/slices/index.ts';
import { type AvatarFiles, openProfiles, type Profiles, type RemoteProfiles } from '../profiles/index.ts';
import { openPushRules, type PushRules } from '../push/index.ts';
import { type Pushers, subscribingNewUsers } from '../pushers/index.ts';
import { ErasedUsers } from '../room-engine/index.ts';
import { AutoJoinJobs, MembershipJobs } from '../rooms/index.ts';
import { NoticeRoomJobs } from '../server-notices/index.ts';
import { slices } from '../slices.ts';
import type { SsoDeps, SsoSlice } from '../sso/index.ts';
import { thirdPartyIdRoutes } from '../third-party-ids/index.ts';
import type { Kernel } from './kernel.ts';
import { subscribesNewUsers } from './new-subscriptions.ts';
import { noticesUserOf } from './notices-user.ts';
import { authenticationOf, type OAuthBeforeUsers } from './oauth.ts';
import type { OpenedSlices } from './opened-slices.ts';
import { startSso } from './sso.ts';
import type { OpenedThirdPartyIds } from './third-party-ids.ts';
import { tokenKeyOf } from './token-key.ts';

/** The slices about users. */
export interface Users {
  readonly accounts: AccountsSlice;
  readonly profiles: Profiles;
  readonly accountData: AccountData;
  readonly tags: Tags;
  readonly ignoredUsers: IgnoredUsers;
  readonly invitePermissions: InvitePermissions;
  readonly filters: Filters;
  readonly pushRules: PushRules;
  readonly erasedUsers: ErasedUsers;
  /** Publishes changes of one-time keys and fallback keys. */
  readonly keyChanges: DeviceKeyChanges;
  /** Logins with accounts of other systems; absent in processes that log no users in. */
  readonly sso: SsoSlice | undefined;
}

/** Services that the slices about users need in the main process; a reader process has none of them. */
export interface UserSources {
  readonly remoteProfiles?: RemoteProfiles;
  readonly avatarFiles?: AvatarFiles | undefined;
  /** Mail addresses and phone numbers. */
  readonly addresses?: OpenedThirdPartyIds;
  /** Subscribes new users to mailed notifications. */
  readonly pushers?: Pushers;
  /** For application services, which reserve names, log in as their users, and create users on demand. */
  readonly appservices?: { readonly registry: AppserviceRegistry; readonly requests: ServiceRequests };
  readonly oauth?: OAuthBeforeUsers;
  /**
   * What modules add: password checks, login types, checks and names of new accounts, and callbacks after logins and for
   * deleted devices.
   */
  readonly modules?:
    | (Pick<AccountExtensions, 'passwordAuthority' | 'loginTypes' | 'checks' | 'names' | 'loggedIn'> & {
        readonly deviceCleanups: readonly DeviceCleanup[];
      })
    | undefined;
  /** For requests to the CAPTCHA service, and for pictures whose URLs come from identity providers and their users. */
  readonly http?: OutboundHttp;
  /** For requests to the identity providers that the configuration names. */
  readonly providerHttp?: OutboundHttp;
  /** Limits the number of monthly active users. */
  readonly activeUsers?: ActiveUsers | undefined;
  /** For logins through browsers. */
  readonly browsers?: Pick<SsoDeps, 'pages' | 'pictures' | 'mappers'>;
}

/** Opens accounts, and the slices that store data of users. */
export function startUsers(kernel: Kernel, opened: OpenedSlices, sources: UserSources = {}): Users {
  const data = openUserData(kernel, opened, sources);
  const keyChanges = new DeviceKeyChanges();
  const { accounts, sso } = openUserAccounts(kernel, data, keyChanges, sources);
  const { activeUsers, addresses, oauth } = sources;
  if (activeUsers) accounts.lastSeen.subscribe((activity) => activeUsers.limit.record(activity));
  if (addresses) {
    const { thirdPartyIds, routesDeps } = addresses;
    opened.add('third-party ids', {
      routes: thirdPartyIdRoutes(thirdPartyIds, routesDeps, accounts.reauthenticator),
    });
  }
  if (sso) opened.add('single sign-on', { routes: sso.routes });
  opened.add('capabilities', { routes: routesOfCapabilities(kernel, oauth) });
  opened.add('rate limits of users', {
    routes: limitOverrideRoutes(accounts.accounts, kernel.limitOverrides, kernel.serverName),
  });
  const streams = [data.slices.erasedUsers.stream, keyChanges.keyStream];
  opened.add('erased users and changes of keys', { streams });
  opened.add('accounts', accounts);
  return { ...data.slices, accounts, keyChanges, sso };
}

type UserData = ReturnType<typeof openUserData>;

/** Opens the slices that store data of users, with the jobs that update copies of their profiles. */
function openUserData(
  kernel: Kernel,
  opened: OpenedSlices,
  { remoteProfiles, avatarFiles, appservices }: UserSources,
) {
  const { configuration, serverName } = kernel;
  const membershipJobs = new MembershipJobs(kernel);
  const userIndexJobs = new UserIndexJobs(kernel);
  const accountReader = new AccountReader(kernel.database);
  const { pushRules } = opened.add('push rules', openPushRules(kernel));
  const notices = noticesUserOf(kernel);
  const isNoticesUser = (userId: string) => userId === notices?.userId;
  const computed = new Map([['m.push_rules', (userId: string) => pushRules.content(userId)]]);
  const { accountData, tags, ignoredUsers, invitePermissions } = opened.add(
    'account data',
    openAccountData({ ...kernel, computed }, isNoticesUser),
  );
  const { filters } = opened.add('filters', openFilters(kernel));
  const openedProfiles = openProfiles(
    {
      ...kernel,
      accounts: accountReader,
      remote: remoteProfiles,
      serverUserProfile: (userId) => (isNoticesUser(userId) ? notices?.profile : undefined),
      avatarFiles,
      provideUser: appservices && ((userId) => appservices.requests.queries.userExists(userId)),
      onChange: async (writer, userId) => {
        await membershipJobs.profileChanged(writer, userId);
        await userIndexJobs.profileChanged(writer, userId);
      },
      settled: (userId) => membershipJobs.profilePropagated(userId),
    },
    { ...configuration.profiles, server_name: serverName },
  );
  const { profiles } = opened.add('profiles', openedProfiles);
  const erasedUsers = new ErasedUsers(kernel.database);
  return {
    slices: {
      profiles,
      accountData,
      tags,
      ignoredUsers,
      invitePermissions,
      filters,
      pushRules,
      erasedUsers,
    },
    membershipJobs,
    userIndexJobs,
    accountReader,
    isNoticesUser,
  };
}

/** Opens accounts with the slices that extend them, and single sign-on where browsers can log in. */
function openUserAccounts(
  kernel: Kernel,
  data: UserData,
  keyChanges: DeviceKeyChanges,
  sources: UserSources,
): { readonly accounts: AccountsSlice; readonly sso: SsoSlice | undefined } {
  const { configuration, serverName } = kernel;
  const { addresses, http, providerHttp, browsers } = sources;
  const sso =
    http && providerHttp && browsers && addresses
      ? startSso(kernel, {
          ...browsers,
          http: providerHttp,
          guardedHttp: http,
          profiles: data.slices.profiles,
          thirdPartyIds: addresses.thirdPartyIds.addresses,
          accounts: () => accounts,
        })
      : undefined;
  const accounts: AccountsSlice = openAccounts(
    {
      ...kernel,
      log: kernel.namedLog('accounts'),
      limits: limitsOf(kernel),
      tokenKey: tokenKeyOf(configuration),
      http,
    },
    {
      ...configuration.accounts,
      ...configuration.devices,
      server_name: serverName,
      public_baseurl: configuration.server.public_baseurl,
    },
    accountExtensions(kernel, data, keyChanges, sources, sso),
  );
  return { accounts, sso };
}

/** Returns what the other slices, application services and modules add to accounts. */
function accountExtensions(
  kernel: Kernel,
  { slices: { profiles, accountData, erasedUsers }, ...data }: UserData,
  keyChanges: DeviceKeyChanges,
  { addresses, pushers, appservices, oauth, modules, activeUsers }: UserSources,
  sso: SsoSlice | undefined,
): AccountExtensions {
  const { configuration, serverName } = kernel;
  const registry = appservices?.registry;
  const ownedRows = new OwnedRows(slices);
  return {
    devices: {
      cleanups: [keyChanges, accountData, ownedRows, ...(modules?.deviceCleanups ?? [])],
      checkNewIds: refuseIdsOfKeys,
    },
    lifecycleHooks: [
      profiles,
      ownedRows,
      data.membershipJobs,
      erasedUsers,
      data.userIndexJobs,
      new AutoJoinJobs({ ...kernel, options: configuration.rooms, isFirst: isFirstAccount }),
      new NoticeRoomJobs(kernel),
      ...(activeUsers?.lifecycleHooks ?? []),
    ],
    reservations: {
      isReservedFrom: (userId, appservice) =>
        data.isNoticesUser(userId) || registry?.isUserReservedFrom(userId, appservice) === true,
      isSender: (userId) => registry?.bySender(userId) !== undefined,
      managesDevices: (id) => registry?.byId(id)?.registration.managesDevices === true,
    },
    ...(addresses && { thirdPartyIds: identifiersOf(kernel, addresses, pushers) }),
    oauth: oauth && { ...oauth, introspection: oauth.service },
    ...sso?.extensions,
    beforeReopening: [
      ...(oauth?.beforeReopening ? [oauth.beforeReopening] : []),
      ...(sso?.extensions.beforeReopening ?? []),
    ],
    loginTypes: [
      ...(registry ? [new ServiceLogin({ registry, accounts: data.accountReader, serverName })] : []),
      ...(sso?.extensions.loginTypes ?? []),
      ...(modules?.loginTypes ?? []),
    ],
    passwordAuthority: modules?.passwordAuthority,
    names: modules?.names,
    loggedIn: modules?.loggedIn,
    checks: combinedChecks([activeUsers?.checks, modules?.checks]),
    stages: [...(addresses?.thirdPartyIds.stages ?? []), ...(sso?.extensions.stages ?? [])],
    wellKnown: clientWellKnown({ ...configuration.accounts, ...configuration.server }),
  };
}

/**
 * Returns the addresses of accounts for registrations. Adding an address also subscribes a new user to mailed
 * notifications, if the options enable that.
 */
function identifiersOf(
  kernel: Kernel,
  { thirdPartyIds: { addresses } }: OpenedThirdPartyIds,
  pushers: Pushers | undefined,
) {
  return pushers && subscribesNewUsers(kernel) ? subscribingNewUsers(addresses, pushers) : addresses;
}

function routesOfCapabilities(
  { configuration }: Kernel,
  { authMetadata, service, canConfirm }: Partial<OAuthBeforeUsers> = {},
) {
  const served = {
    thirdPartyIdChanges: configuration.accounts.enable_3pid_changes && service === undefined,
    loginTokens: configuration.accounts.login_via_existing_session.enabled && service === undefined,
    confirmsLoginTokens: configuration.accounts.login_via_existing_session.require_ui_auth,
    locking: true,
    suspension: true,
    maxDelayedEvents: maxScheduled,
  };
  const { accounts, oauth, profiles, rooms, server } = configuration;
  const features = { qr_code_login: oauth.oauth2.enabled && service === undefined };
  return capabilityRoutes(
    {
      served,
      canConfirm,
      authMetadata,
      authentication: authMetadata && (() => authenticationOf(authMetadata)),
    },
    {
      ...accounts,
      ...profiles,
      ...rooms,
      ...server,
      ...features,
      ...(service && { password_config: noPasswords(accounts) }),
    },
  );
}

/** Returns the password options with passwords turned off, because an authentication service authenticates users. */
const noPasswords = ({ password_config }: Kernel['configuration']['accounts']) => ({
  ...password_config,
  enabled: false as const,
});

function limitsOf({ configuration, limiter }: Kernel) {
  const { rc_registration, rc_registration_token_validity, rc_login } = configuration.rateLimits;
  return {
    registration: limiter(rc_registration),
    availability: limiter(availabilityRate(rc_registration)),
    tokenValidity: limiter(rc_registration_token_validity),
    loginTokens: limiter(loginTokenRate),
    challenges: limiter(challengeRate(rc_registration)),
    login: {
      address: limiter(rc_login.address),
      account: limiter(rc_login.account),
      failedAttempts: limiter(rc_login.failed_attempts),
    },
  };
}
