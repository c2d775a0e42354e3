import { type AuditLog, openAdmin } from '../admin/index.ts';
import type { Directory } from '../directory/index.ts';
import type { FederationSender } from '../federation/index.ts';
import type { MediaSlice } from '../media/index.ts';
import type { ModulesSlice } from '../modules/index.ts';
import type { CrossSigningResets } from '../oauth/index.ts';
import type { Pushers } from '../pushers/index.ts';
import type { Reports } from '../reports/index.ts';
import { RoomDeletion, type Rooms, type RoomUpkeep, UserRedaction } from '../rooms/index.ts';
import type { AccountAddresses } from '../third-party-ids/index.ts';
import type { Encryption } from './encryption.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { Users } from './users.ts';

/** The services through which administrators manage users. */
interface UserServices {
  readonly users: Users;
  readonly pushers: Pushers;
  readonly addresses: AccountAddresses;
  readonly encryption: Encryption;
  readonly resets: CrossSigningResets;
}

/** The services through which administrators manage rooms. */
interface RoomServices {
  readonly rooms: Rooms;
  readonly upkeep: RoomUpkeep;
  readonly directory: Directory;
  readonly reports: Reports;
}

interface Deps {
  readonly kernel: Kernel;
  readonly userServices: UserServices;
  readonly roomServices: RoomServices;
  readonly federation: Federation;
  readonly sender: FederationSender;
  /** Absent when `enable_media_repo` is off. */
  readonly media: MediaSlice | undefined;
  /** What modules decide: which rooms may be deleted, and the pace of background updates. */
  readonly modules: ModulesSlice['administration'] | undefined;
}

/** Opens the admin API over all other slices. Must be called before jobs are started. @returns its audit log */
export function startAdmin(
  { kernel, userServices, roomServices, federation, sender, media, modules }: Deps,
  opened: OpenedSlices,
): AuditLog {
  const { users, pushers, addresses, encryption, resets } = userServices;
  const { rooms, upkeep, directory, reports } = roomServices;
  const { accounts, profiles, accountData } = users;
  const deletion = new RoomDeletion({
    ...kernel,
    ...upkeep,
    rooms,
    blocked: rooms.blocked,
    eventsQueued: () => sender.eventsQueued(),
  });
  const userRedaction = new UserRedaction({ ...kernel, rooms });
  const { audit } = opened.add(
    'admin API',
    openAdmin(
      { ...kernel, accounts, rooms, directory },
      {
        users: {
          profiles,
          accountData,
          pushers,
          addresses,
          externalIds: users.sso?.externalIds,
          crossSigning: {
            hasMasterKey: (userId) => encryption.e2ee.crossSigning.hasMasterKey(userId),
            allow: (userId) => resets.allow(userId),
          },
          userRedaction,
          options: kernel.configuration.accounts,
        },
        rooms: { ...upkeep, deletion, checkRoomDeletion: modules?.checkRoomDeletion },
        media: media?.moderation,
        reports,
        destinations: federation.destinations,
        updates: modules,
      },
    ),
  );
  return audit;
}
