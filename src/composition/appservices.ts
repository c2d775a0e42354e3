import { AccountReader, type AccountsSlice } from '../accounts/index.ts';
import {
  type AppserviceRegistry,
  openAppserviceRegistry,
  ServiceTokens,
} from '../appservice-registry/index.ts';
import { MatrixError, type UserId } from '../protocol/index.ts';
import type { AliasReservations } from '../rooms/index.ts';
import type { Kernel } from './kernel.ts';

/** Opens the registered application services. @throws StartFailure for invalid registrations */
export function openRegistry(kernel: Kernel): AppserviceRegistry {
  const log = kernel.namedLog('appservices');
  const { app_service_config_files: files } = kernel.configuration.appservices;
  return openAppserviceRegistry({ serverName: kernel.serverName, log }, files);
}

/** Aliases of application services. */
export function aliasReservations(registry: AppserviceRegistry): AliasReservations {
  return {
    isReservedFrom: (alias, requester) => registry.isAliasReservedFrom(alias, requester),
    mayDelete: (alias, { appservice }) =>
      appservice !== undefined && registry.byId(appservice)?.aliases.has(alias) === true,
    provide: async () => false,
  };
}

/** Accepts the tokens of application services; creates the accounts of their senders. */
export async function openServiceTokens(
  kernel: Kernel,
  registry: AppserviceRegistry,
  { accounts, devices, sessions, lastSeen, registration }: AccountsSlice,
): Promise<ServiceTokens> {
  const reader = new AccountReader(kernel.database);
  const { track_appservice_user_ips: tracksAddresses } = kernel.configuration.appservices;
  const tokens = new ServiceTokens({
    registry,
    caches: kernel.caches,
    account: (userId) => reader.getUser(userId),
    hasDevice: (userId, deviceId) => devices.exists(userId, deviceId),
    lastSeen: tracksAddresses ? lastSeen : undefined,
  });
  if (registry.isEmpty) return tokens;
  for (const stream of [accounts.accountStream, sessions.sessionStream, devices.deviceListStream]) {
    stream.subscribe(({ userId }: { readonly userId: string }) => tokens.forget(userId));
  }
  for (const { id, sender } of registry.services) {
    if ((await accounts.getUser(sender)) !== undefined) continue;
    await registration.create({ userId: sender as UserId, appservice: id }).catch((error: unknown) => {
      // The id of a user that differs in case only.
      if (!(error instanceof MatrixError)) throw error;
    });
  }
  return tokens;
}
