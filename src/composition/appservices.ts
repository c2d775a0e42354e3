import { AccountReader, type AccountsSlice } from '../accounts/index.ts';
import {
  type AppserviceRegistry,
  openAppserviceRegistry,
  reportChangedRegistrations,
  ServiceTokens,
} from '../appservice-registry/index.ts';
import {
  type Appservices,
  openAppservices,
  openServiceRequests,
  type ServiceRequests,
} from '../appservices/index.ts';
import { type Authenticator, acceptTokens } from '../kernel/http/index.ts';
import { MatrixError, type UserId } from '../protocol/index.ts';
import type { AliasReservations, Rooms } from '../rooms/index.ts';
import type { Conversations } from './conversations.ts';
import type { Encryption } from './encryption.ts';
import { openHttpToConfiguredServers } from './http-to-configured-servers.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import { prejoinStateKeys } from './rooms.ts';
import type { Users } from './users.ts';

/** The parts of application services that accounts and rooms use before the services are started. */
export interface RegisteredAppservices {
  readonly registry: AppserviceRegistry;
  readonly requests: ServiceRequests;
  readonly aliasReservations: AliasReservations;
  /** Reads the registration files again, and logs the services that a restart would add, change or remove. */
  reload(): void;
  /** Starts to follow the other slices and to send transactions to the services. */
  start(parts: AppserviceParts, opened: OpenedSlices): Promise<Appservices>;
}

/** The slices whose changes application services receive. */
export interface AppserviceParts {
  readonly users: Users;
  readonly rooms: Rooms;
  readonly conversations: Conversations;
  readonly encryption: Encryption;
}

/** Opens the registered application services. @throws StartFailure for invalid registrations */
export async function openRegisteredAppservices(
  kernel: Kernel,
  opened: OpenedSlices,
): Promise<RegisteredAppservices> {
  const { configuration, serverName, database } = kernel;
  const log = kernel.namedLog('appservices');
  const options = configuration.appservices;
  const registry = openAppserviceRegistry({ serverName, log }, options.app_service_config_files);
  const http = registry.isEmpty
    ? undefined
    : openHttpToConfiguredServers(kernel, 'appservice_connection_pools', { maxPools: 100 });
  opened.add('requests to application services', { stop: () => http?.close() });
  const requests = await openServiceRequests({ registry, database, http, log, options });
  let started: Appservices | undefined;
  const running = registry.services.map(({ registration }) => registration);
  return {
    registry,
    requests,
    reload: () => reportChangedRegistrations(log, options.app_service_config_files, running),
    aliasReservations: {
      isReservedFrom: (alias, requester) => registry.isAliasReservedFrom(alias, requester),
      mayDelete: (alias, { appservice }) =>
        appservice !== undefined && registry.byId(appservice)?.aliases.has(alias) === true,
      provide: (alias) => requests.queries.aliasExists(alias),
      onChange: (roomId) => started?.aliasesChanged(roomId),
    },
    async start({ users, rooms, conversations, encryption }, slices) {
      const { accounts, keyChanges } = users;
      started = await openAppservices({
        ...kernel,
        engine: rooms.engine,
        log,
        registry,
        requests,
        followed: {
          ...conversations,
          devices: accounts.devices,
          keyChanges,
          queues: encryption.queues,
        },
        transactionParts: {
          clientEvents: rooms.clientEvents,
          keyCounts: encryption.e2ee.counts,
          prejoinStateKeys: prejoinStateKeys(kernel),
        },
        aliasesOf: (roomId) => rooms.aliases.of(roomId),
        userExists: (userId) => accounts.accounts.userExists(userId),
      });
      return slices.add('application services', started);
    },
  };
}

/**
 * Returns the check of access tokens, which accepts those of application services and of sessions. Creates the missing
 * accounts of the services' senders.
 * @param endServiceBackoff called with the id of a service that sends a request: the service is reachable
 */
export async function openAuthenticator(
  kernel: Kernel,
  registry: AppserviceRegistry,
  slice: AccountsSlice,
  endServiceBackoff: (serviceId: string) => void,
): Promise<Authenticator> {
  if (registry.isEmpty) return acceptTokens([slice.authenticator]);
  const { accounts, devices, sessions, lastSeen } = slice;
  const reader = new AccountReader(kernel.database);
  const tokens = new ServiceTokens({
    registry,
    caches: kernel.caches,
    account: (userId) => reader.getUser(userId),
    hasDevice: (userId, deviceId) => devices.exists(userId, deviceId),
    lastSeen: kernel.configuration.appservices.track_appservice_user_ips ? lastSeen : undefined,
    onRequest: endServiceBackoff,
  });
  for (const stream of [accounts.accountStream, sessions.sessionStream, devices.deviceListStream]) {
    stream.subscribe(({ userId }: { readonly userId: string }) => tokens.forget(userId));
  }
  await createSenders(registry, slice);
  return acceptTokens([tokens, slice.authenticator]);
}

async function createSenders(registry: AppserviceRegistry, slice: AccountsSlice): Promise<void> {
  for (const { id, sender } of registry.services) {
    if ((await slice.accounts.getUser(sender)) !== undefined) continue;
    const account = { userId: sender as UserId, appservice: id };
    await slice.registration.create(account).catch((error: unknown) => {
      // The name is taken by a user whose id differs only in upper and lower case. The service can then act only as its
      // other users.
      if (!(error instanceof MatrixError)) throw error;
    });
  }
}
