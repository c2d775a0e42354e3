import { openProfileRequests } from '../../profiles/index.ts';
import { RelationIndex } from '../../relations/index.ts';
import { startActiveUsers } from '../active-users.ts';
import { startEncryption } from '../encryption.ts';
import { otherServers } from '../federation-rooms.ts';
import { remoteMemberships } from '../handshakes.ts';
import type { MainKernel } from '../kernel.ts';
import { supplyModules } from '../modules.ts';
import type { OpenedSlices } from '../opened-slices.ts';
import { startRooms } from '../rooms.ts';
import { startUsers } from '../users.ts';
import type { Foundation } from './foundation.ts';

export type UsersAndRooms = Awaited<ReturnType<typeof startUsersAndRooms>>;

/** Opens users and rooms, and what needs both of them: end-to-end encryption and requests for profiles. */
export async function startUsersAndRooms(kernel: MainKernel, foundation: Foundation, opened: OpenedSlices) {
  const { federation, lookups, modules, media, appservices, oauth, pages, pushers } = foundation;
  const { thirdPartyIds, providerHttp } = foundation;
  const activeUsers = await startActiveUsers(kernel, thirdPartyIds, opened);
  const users = startUsers(kernel, opened, {
    appservices,
    remoteProfiles: lookups.profiles,
    avatarFiles: media,
    addresses: thirdPartyIds,
    pushers,
    oauth,
    http: federation.http,
    providerHttp,
    modules: modules?.accounts,
    activeUsers,
    browsers: { pages, pictures: media, mappers: modules?.mappers },
  });
  await users.sso?.check();
  const relationIndex = new RelationIndex(kernel.database, kernel.serverName, kernel.caches);
  const rooms = await startRooms(kernel, users, relationIndex, opened, {
    federation: {
      remoteAliases: lookups.aliases,
      otherServers: otherServers(federation),
      openRemoteMemberships: await remoteMemberships(kernel, federation, users),
    },
    aliasReservations: appservices.aliasReservations,
    extendRules: modules?.directoryRules,
    ...modules?.rooms,
  });
  supplyModules(modules, users, rooms, thirdPartyIds);
  const encryption = await startEncryption(kernel, users, rooms, federation, opened);
  const profileRequests = openProfileRequests(users.profiles, rooms.engine, kernel.configuration.profiles);
  opened.add('profile requests', profileRequests);
  return { activeUsers, users, relationIndex, rooms, encryption };
}
