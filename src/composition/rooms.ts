import { directoryRules } from '../directory/index.ts';
import { administratorRight } from '../kernel/http/index.ts';
import { stateMapKey } from '../protocol/index.ts';
import { type RelationIndex, Relations } from '../relations/index.ts';
import { keysWithEmptyStateKey, PrejoinStateKeys } from '../room-engine/index.ts';
import {
  type DirectoryRules,
  type InviteLimits,
  openRooms,
  openRoomUpkeep,
  type RoomExtensions,
  type RoomLimits,
  type Rooms,
  type RoomUpkeep,
} from '../rooms/index.ts';
import { slices } from '../slices.ts';
import type { Kernel } from './kernel.ts';
import { noticeLeaveCheck } from './notices-user.ts';
import type { OpenedSlices } from './opened-slices.ts';
import { transferSettings } from './room-settings.ts';
import { loadSigningKey } from './signing-key.ts';
import type { Users } from './users.ts';

function limitsOf(
  { configuration, limiter, limitOverrides }: Kernel,
  chooseInviteLimits: RoomSources['chooseInviteLimits'],
): RoomLimits {
  const { rc_message, rc_admin_redaction, rc_joins, rc_joins_per_room, rc_invites, rc_room_creation } =
    configuration.rateLimits;
  const invites = {
    per_room: limiter(rc_invites.per_room),
    per_user: limiter(rc_invites.per_user),
    per_issuer: limiter(rc_invites.per_issuer),
  };
  return {
    rc_message: limiter(rc_message),
    rc_admin_redaction: rc_admin_redaction === null ? undefined : limiter(rc_admin_redaction),
    rc_joins: limiter(rc_joins.local),
    rc_remote_joins: limiter(rc_joins.remote),
    rc_joins_per_room: limiter(rc_joins_per_room),
    rc_invites: invites,
    rc_room_creation: limiter(rc_room_creation),
    inviteLimitsOf: chooseInviteLimits?.(invites),
    overrideOf: (userId) => limitOverrides.limiterOf(userId),
  };
}

/**
 * Extensions of rooms that composition supplies: requests to other servers, reservations of application services, and
 * rules and checks of modules.
 */
export interface RoomSources
  extends Pick<
    RoomExtensions,
    'federation' | 'aliasReservations' | 'receivedEventChecks' | 'eventAdditions'
  > {
  /** Adds the checks of modules to the operator's rules for aliases and the room directory. */
  readonly extendRules?: ((rules: DirectoryRules) => DirectoryRules) | undefined;
  /** Returns the rate limits that modules choose for the invites of each user. */
  readonly chooseInviteLimits?: ((defaultLimits: InviteLimits) => RoomLimits['inviteLimitsOf']) | undefined;
}

/**
 * Opens rooms. They use accounts and profiles.
 * @param opened the slices that were opened before; their checks of events are used
 */
export async function startRooms(
  kernel: Kernel,
  users: Users,
  relationIndex: RelationIndex,
  opened: OpenedSlices,
  { extendRules = (rules) => rules, chooseInviteLimits, ...extensions }: RoomSources = {},
): Promise<Rooms> {
  const { accounts } = users.accounts;
  const isAdmin = administratorRight((userId) => accounts.isAdmin(userId));
  const rooms = await openRooms(
    {
      ...kernel,
      signer: { serverName: kernel.serverName, key: await loadSigningKey(kernel) },
      profiles: {
        profile: (userId) => users.profiles.read(userId),
        checkAvatar: (url) => users.profiles.checkAvatar(url),
      },
      users: { isAdmin },
      limits: limitsOf(kernel, chooseInviteLimits),
      log: kernel.namedLog('rooms'),
      eventCacheSize: kernel.configuration.caches.event_cache_size,
    },
    kernel.configuration.rooms,
    {
      ...extensions,
      directoryRules: extendRules(directoryRules(kernel.configuration.directory, isAdmin)),
      leaveCheck: noticeLeaveCheck(kernel),
      eventChecks: opened.eventChecks,
      eventIndex: relationIndex,
      relations: (engine, clientEvents) => {
        relationIndex.follow(engine);
        return new Relations({ engine, clientEvents, index: relationIndex, ignored: users.ignoredUsers });
      },
      ignored: users.ignoredUsers,
      erased: users.erasedUsers,
      invitePolicy: users.invitePermissions,
    },
  );
  return opened.add('rooms', rooms);
}

/** The rows that the slices store for rooms. */
export const roomRows = slices.flatMap((slice) => slice.roomRows ?? []);

/** Opens the background work on rooms. Must be called before jobs are started. */
export async function startRoomUpkeep(
  kernel: Kernel,
  users: Users,
  rooms: Rooms,
  opened: OpenedSlices,
): Promise<RoomUpkeep> {
  const { accounts } = users.accounts;
  const upkeep = await openRoomUpkeep({
    ...kernel,
    log: kernel.namedLog('rooms'),
    rooms,
    options: kernel.configuration.rooms,
    rows: roomRows,
    isGuest: async (userId) => (await accounts.getUser(userId))?.isGuest === true,
    transferSettings: (userId, from, to) => transferSettings(users, userId, from, to),
  });
  return opened.add('upkeep of rooms', upkeep);
}

/** Event types of the stripped state of invites and knocks, by default. Source: the description of `room_prejoin_state`. */
const defaultPrejoinTypes = [
  'm.room.join_rules',
  'm.room.canonical_alias',
  'm.room.avatar',
  'm.room.encryption',
  'm.room.name',
  'm.room.create',
  'm.room.topic',
];

/** Returns the types and state keys of the state events that users receive with invites and knocks. */
export function prejoinStateKeys({ configuration }: Kernel): PrejoinStateKeys {
  const { disable_default_event_types, additional_event_types } = configuration.rooms.room_prejoin_state;
  const types = disable_default_event_types ? [] : defaultPrejoinTypes;
  const pairs = additional_event_types.filter((entry) => typeof entry !== 'string');
  const wholeTypes = additional_event_types.filter((entry) => typeof entry === 'string');
  const single = pairs.map(([type = '', stateKey = '']) => stateMapKey(type, stateKey));
  return new PrejoinStateKeys([...keysWithEmptyStateKey(types), ...single], wholeTypes);
}
