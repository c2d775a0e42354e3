import { directoryRules } from '../directory/index.ts';
import { stateMapKey } from '../protocol/index.ts';
import { type RelationIndex, Relations } from '../relations/index.ts';
import { keysWithEmptyStateKey, PrejoinKeys, registerTransactionCleanup } from '../room-engine/index.ts';
import type { OtherServers } from '../room-federation/index.ts';
import { openRooms, type RoomLimits, type Rooms } from '../rooms/index.ts';
import type { RemoteLookups } from './federation-queries.ts';
import type { Kernel } from './kernel.ts';
import type { People } from './people.ts';
import type { Shutdown } from './shutdown.ts';
import { loadSigningKey } from './signing-key.ts';

function limitsOf({ configuration, limiter, limitOverrides }: Kernel): RoomLimits {
  const { rc_message, rc_admin_redaction, rc_joins, rc_joins_per_room, rc_invites, rc_room_creation } =
    configuration.rateLimits;
  return {
    rc_message: limiter(rc_message),
    rc_admin_redaction: rc_admin_redaction === null ? undefined : limiter(rc_admin_redaction),
    rc_joins: limiter(rc_joins.local),
    rc_remote_joins: limiter(rc_joins.remote),
    rc_joins_per_room: limiter(rc_joins_per_room),
    rc_invites: {
      per_room: limiter(rc_invites.per_room),
      per_user: limiter(rc_invites.per_user),
      per_issuer: limiter(rc_invites.per_issuer),
    },
    rc_room_creation: limiter(rc_room_creation),
    overrideOf: (userId) => limitOverrides.limiterOf(userId),
  };
}

/** Opens rooms and connects them with accounts and profiles. */
export async function startRooms(
  kernel: Kernel,
  people: People,
  relationIndex: RelationIndex,
  shutdown: Shutdown,
  lookups?: RemoteLookups,
  others?: OtherServers,
): Promise<Rooms> {
  const { accounts } = people.accounts;
  const rooms = await openRooms({
    ...kernel,
    signer: { serverName: kernel.serverName, key: await loadSigningKey(kernel) },
    profiles: { profile: (userId) => people.profiles.read(userId) },
    users: {
      isAdmin: (userId) => accounts.isAdmin(userId),
    },
    options: kernel.configuration.rooms,
    directoryRules: directoryRules(kernel.configuration.directory, (userId) => accounts.isAdmin(userId)),
    limits: limitsOf(kernel),
    ...(lookups && { remoteAliases: lookups.aliases }),
    ...(others && { otherServers: others }),
    log: kernel.namedLog('rooms'),
    eventIndex: relationIndex,
    relations: (engine, clientEvents) => {
      relationIndex.follow(engine);
      return new Relations({ engine, clientEvents, index: relationIndex, ignored: people.ignoredUsers });
    },
    ignored: people.ignoredUsers,
    erased: people.erasedUsers,
    invitePolicy: people.invitePermissions,
    eventCacheSize: kernel.configuration.caches.event_cache_size,
  });
  people.accountMemberships.register(rooms.engine, rooms.memberships, {
    database: kernel.database,
    isGuest: async (userId) => (await accounts.getUser(userId))?.isGuest === true,
  });
  if (kernel.configuration.rooms.forget_rooms_on_leave) {
    people.accountMemberships.forgetOnRemoteRemoval(rooms.engine, kernel.database, kernel.serverName);
  }
  people.autoJoin.register(rooms);
  registerTransactionCleanup(kernel.jobs, kernel);
  shutdown.add('rooms', async () => {
    const completed = rooms.completion.close();
    await rooms.incoming.close();
    await completed;
    await rooms.engine.close();
  });
  return rooms;
}

/** Event types of the stripped state of invites and knocks, by default. Source: "room_prejoin_state". */
const defaultPrejoinTypes = [
  'm.room.join_rules',
  'm.room.canonical_alias',
  'm.room.avatar',
  'm.room.encryption',
  'm.room.name',
  'm.room.create',
  'm.room.topic',
];

/** State events that users receive with invites and knocks. */
export function prejoinKeys({ configuration }: Kernel): PrejoinKeys {
  const { disable_default_event_types, additional_event_types } = configuration.rooms.room_prejoin_state;
  const types = disable_default_event_types ? [] : defaultPrejoinTypes;
  const pairs = additional_event_types.filter((entry) => typeof entry !== 'string');
  const wholeTypes = additional_event_types.filter((entry) => typeof entry === 'string');
  const single = pairs.map(([type = '', stateKey = '']) => stateMapKey(type, stateKey));
  return new PrejoinKeys([...keysWithEmptyStateKey(types), ...single], wholeTypes);
}
