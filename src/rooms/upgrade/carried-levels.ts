import {
  creatorsOf,
  defaultLevels,
  isJsonObject,
  isUserId,
  type JsonObject,
  type JsonValue,
  PowerLevels,
  type RoomEvent,
  type RoomVersion,
} from '../../protocol/index.ts';

/** The power level of the old room's creators in a new room whose version has no privileged creators. */
const formerCreatorLevel = 100;

/** Default level of `m.room.tombstone` in room versions with privileged creators, and in earlier room versions. */
const tombstoneLevel = { withPrivilegedCreators: 150, earlier: 100 };

/** The events that determine power levels in the old room. */
export interface OldLevels {
  readonly create: RoomEvent;
  readonly levels: RoomEvent | undefined;
}

/**
 * Returns the power levels of the new room: the levels of the old room in the format of the new version. Unknown keys
 * are copied. In room versions with privileged creators, the new creators are left out, former creators are assigned no
 * level, because the user who upgrades chooses the creators, and the default level of `m.room.tombstone` is raised.
 * Source: client-server API, "Room Upgrades"; room version 12.
 */
export function carriedLevels(
  { create, levels }: OldLevels,
  version: RoomVersion,
  creators: readonly string[],
): JsonObject {
  const old = levels?.content ?? {};
  const users = usersIn(old['users']);
  const events = levelsIn(old['events']);
  if (!version.privilegedCreators && (create.version.privilegedCreators || levels === undefined)) {
    for (const creator of creatorsOf(create)) users[creator] ??= formerCreatorLevel;
  }
  if (version.privilegedCreators) {
    for (const creator of creators) delete users[creator];
    if ((events['m.room.tombstone'] ?? tombstoneLevel.earlier) === tombstoneLevel.earlier) {
      events['m.room.tombstone'] = tombstoneLevel.withPrivilegedCreators;
    }
  }
  const namedLevels = Object.keys(defaultLevels).flatMap((name): [string, number][] => {
    const level = levelOf(old[name]);
    return level === undefined ? [] : [[name, level]];
  });
  const notifications = levelsIn(old['notifications']);
  const unknown = Object.entries(old).filter(([name]) => !knownKeys.has(name));
  return {
    ...Object.fromEntries(unknown),
    ...Object.fromEntries(namedLevels),
    users,
    events,
    ...(Object.keys(notifications).length > 0 ? { notifications } : undefined),
  };
}

const knownKeys = new Set([...Object.keys(defaultLevels), 'users', 'events', 'notifications']);

/**
 * Returns the levels with the creator's level raised until it suffices for all first events; `undefined` when it
 * suffices already.
 */
export function temporaryLevels(
  levels: JsonObject,
  creator: string,
  version: RoomVersion,
): JsonObject | undefined {
  if (version.privilegedCreators) return undefined;
  const { users, events, notifications: _notifications, ...namedLevels } = levels;
  const requiredLevels = [
    ...Object.values(levelsIn(namedLevels)),
    ...Object.values(levelsIn(users)),
    ...Object.values(levelsIn(events)),
  ];
  const needed = Math.max(formerCreatorLevel, ...requiredLevels);
  const level = levelsIn(users)[creator] ?? levelOf(levels['users_default']) ?? 0;
  if (level >= needed) return undefined;
  return { ...levels, users: { ...levelsIn(users), [creator]: needed } };
}

/**
 * Returns the old room's power levels with sending and inviting restricted to moderators; `undefined` when
 * both are restricted already. Source: client-server API, "Room Upgrades", step 6.
 */
export function restrictedLevels({ create, levels }: OldLevels): JsonObject | undefined {
  const oldLevels = new PowerLevels(create, levels);
  const moderatorLevel = Math.max(50, oldLevels.required('users_default') + 1);
  const changes = (['events_default', 'invite'] as const).filter(
    (name) => oldLevels.required(name) < moderatorLevel,
  );
  if (changes.length === 0) return undefined;
  return { ...levels?.content, ...Object.fromEntries(changes.map((name) => [name, moderatorLevel])) };
}

/**
 * Returns the levels of users. Leaves out invalid user ids: from room version 10 on, they would make the event invalid.
 */
const usersIn = (value: JsonValue | undefined) =>
  Object.fromEntries(Object.entries(levelsIn(value)).filter(([userId]) => isUserId(userId)));

function levelsIn(value: JsonValue | undefined): Record<string, number> {
  if (!isJsonObject(value)) return {};
  const entries = Object.entries(value).map(([key, level]) => [key, levelOf(level)] as const);
  return Object.fromEntries(entries.filter(([, level]) => level !== undefined)) as Record<string, number>;
}

/** Returns a level as an integer; early room versions allow strings as well. `undefined` for other values. */
function levelOf(value: JsonValue | undefined): number | undefined {
  const level = typeof value === 'string' && /^\s*[+-]?\d+\s*$/.test(value) ? Number(value) : value;
  if (typeof level !== 'number' || !Number.isFinite(level)) return undefined;
  const integer = Math.trunc(level);
  return Number.isSafeInteger(integer) ? integer : undefined;
}
