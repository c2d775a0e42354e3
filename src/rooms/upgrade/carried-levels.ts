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

/** The power level that privileged creators of the old room get in room versions without privileged creators. */
const formerCreatorLevel = 100;

/** Level of `m.room.tombstone` in room versions with privileged creators, and in earlier ones. */
const tombstoneLevel = { withCreators: 150, before: 100 };

/** The events that determine power levels in the old room. */
export interface OldLevels {
  readonly create: RoomEvent;
  readonly levels: RoomEvent | undefined;
}

/**
 * The power levels of the new room: those of the old room in the format of the new version, with unknown
 * keys. In room versions with privileged creators, the new creators are left out, and former creators get no
 * level, since the user who upgrades chooses the creators.
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
    if ((events['m.room.tombstone'] ?? tombstoneLevel.before) === tombstoneLevel.before) {
      events['m.room.tombstone'] = tombstoneLevel.withCreators;
    }
  }
  const named = Object.keys(defaultLevels).flatMap((name): [string, number][] => {
    const level = levelOf(old[name]);
    return level === undefined ? [] : [[name, level]];
  });
  const notifications = levelsIn(old['notifications']);
  const unknown = Object.entries(old).filter(([name]) => !knownKeys.has(name));
  return {
    ...Object.fromEntries(unknown),
    ...Object.fromEntries(named),
    users,
    events,
    ...(Object.keys(notifications).length > 0 ? { notifications } : undefined),
  };
}

const knownKeys = new Set([...Object.keys(defaultLevels), 'users', 'events', 'notifications']);

/**
 * Returns the levels with the creator raised to a level that suffices for all first events; `undefined` when
 * it suffices already.
 */
export function temporaryLevels(
  levels: JsonObject,
  creator: string,
  version: RoomVersion,
): JsonObject | undefined {
  if (version.privilegedCreators) return undefined;
  const { users, events, notifications: _notifications, ...named } = levels;
  const all = [
    ...Object.values(levelsIn(named)),
    ...Object.values(levelsIn(users)),
    ...Object.values(levelsIn(events)),
  ];
  const needed = Math.max(formerCreatorLevel, ...all);
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
  const closed = Math.max(50, oldLevels.required('users_default') + 1);
  const changes = (['events_default', 'invite'] as const).filter((name) => oldLevels.required(name) < closed);
  if (changes.length === 0) return undefined;
  return { ...levels?.content, ...Object.fromEntries(changes.map((name) => [name, closed])) };
}

/** Invalid user ids would make the event invalid since room version 10. */
const usersIn = (value: JsonValue | undefined) =>
  Object.fromEntries(Object.entries(levelsIn(value)).filter(([userId]) => isUserId(userId)));

function levelsIn(value: JsonValue | undefined): Record<string, number> {
  if (!isJsonObject(value)) return {};
  const entries = Object.entries(value).map(([key, level]) => [key, levelOf(level)] as const);
  return Object.fromEntries(entries.filter(([, level]) => level !== undefined)) as Record<string, number>;
}

/** A level as an integer: early room versions allow strings as well. */
function levelOf(value: JsonValue | undefined): number | undefined {
  const level = typeof value === 'string' && /^\s*[+-]?\d+\s*$/.test(value) ? Number(value) : value;
  if (typeof level !== 'number' || !Number.isFinite(level)) return undefined;
  const whole = Math.trunc(level);
  return Number.isSafeInteger(whole) ? whole : undefined;
}
