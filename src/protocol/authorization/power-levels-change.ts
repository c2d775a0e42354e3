import type { RoomEvent } from '../event.ts';
import { isUserId } from '../identifiers/index.ts';
import type { JsonObject } from '../json.ts';
import {
  creatorsOf,
  defaultLevels,
  type Levels,
  namedLevels,
  type PowerLevels,
  type PowerLevelsContent,
  parsePowerLevels,
  powerLevelsContentOf,
} from '../power-levels/index.ts';
import type { RoomVersion } from '../room-versions.ts';
import type { RoomState } from './room-state.ts';
import { allow, reject, type Verdict } from './verdict.ts';

/**
 * Rule 10, `m.room.power_levels`:
 * - 10.1, 10.2: the named levels and the levels in `events` and `notifications` are integers (since v10).
 * - 10.3: `users` has levels by user id.
 * - 10.4: `users` does not list a creator (since v12).
 * - 10.5: the first power levels of a room are allowed.
 * - 10.6: of a named level that changes, the old and the new value are at most the sender's level.
 * - 10.7, 10.8: the same holds for levels in `events` and (since v6) `notifications`.
 * - 10.9: of a level in `users` that changes, the old value is below the sender's level, unless it is the sender's own.
 * - 10.10: of a level in `users` that changes, the new value is at most the sender's level.
 * - 10.11: everything else is allowed.
 * @param levels the power levels before the event; the sender's level is the one that they give
 */
export function authorizePowerLevels(event: RoomEvent, room: RoomState, levels: PowerLevels): Verdict {
  const after = powerLevelsContentOf(event);
  const error = contentError(after, event.version, room.create);
  if (error !== undefined) return reject(error);
  // 10.5
  const current = room.lookup('m.room.power_levels', '');
  if (current === undefined) return allow();
  const change: LevelsChange = {
    before: powerLevelsContentOf(current),
    after,
    sender: event.sender,
    senderLevel: levels.ofUser(event.sender),
  };
  const forbidden = forbiddenChange(change, event);
  // 10.11
  return forbidden === undefined
    ? allow()
    : reject(`The power level of the sender is too low to change ${forbidden}`);
}

/** Rules 10.1 to 10.4, which do not depend on the sender. @returns what is malformed, or `undefined` */
export function powerLevelsContentError(
  content: JsonObject,
  version: RoomVersion,
  create: RoomEvent,
): string | undefined {
  return contentError(parsePowerLevels(content, version.powerLevelNumbers), version, create);
}

/** Rules 10.1 to 10.4. @returns what is malformed, or `undefined` */
function contentError(
  content: PowerLevelsContent,
  version: RoomVersion,
  create: RoomEvent,
): string | undefined {
  if (version.powerLevelNumbers === 'integers') {
    // 10.1: since v10.
    for (const [name, level] of content.named) if (Number.isNaN(level)) return `${name} is not an integer`;
    // 10.2: since v10.
    if (!areLevels(content.events)) return 'events is not an object with integer values';
    if (!areLevels(content.notifications)) return 'notifications is not an object with integer values';
  }
  // 10.3; up to v9 the integers may be strings, up to v5 floats.
  const { users } = content;
  if (!areLevels(users)) return 'users is not an object of integers';
  for (const user of users.keys()) if (!isUserId(user)) return `${user} in users is not a user id`;
  // 10.4: since v12.
  if (version.privilegedCreators) {
    for (const creator of creatorsOf(create))
      if (users.has(creator)) return `users must not list the creator ${creator}`;
  }
  return undefined;
}

function areLevels(levels: Levels): levels is ReadonlyMap<string, number> {
  if (levels === undefined) return false;
  for (const level of levels.values()) if (Number.isNaN(level)) return false;
  return true;
}

interface LevelsChange {
  readonly before: PowerLevelsContent;
  readonly after: PowerLevelsContent;
  readonly sender: string;
  readonly senderLevel: number;
}

/**
 * Rules 10.6 to 10.10. The comparisons are written so that a level that cannot be read (`NaN`, possible up to v9)
 * counts as changed and as above every user.
 * @returns what the sender may not change, or `undefined`
 */
function forbiddenChange(change: LevelsChange, event: RoomEvent): string | undefined {
  const { before, after } = change;
  return (
    forbiddenNamedLevel(change) ??
    // 10.7, 10.8
    forbiddenListedLevel('events', before.events, after.events, change) ??
    // 10.7, 10.8: `notifications` since v6.
    (event.version.notificationLevelsChecked
      ? forbiddenListedLevel('notifications', before.notifications, after.notifications, change)
      : undefined) ??
    forbiddenUserLevel(change)
  );
}

/** Rule 10.6. A missing level has its default, as the note before the rules in the specification says. */
function forbiddenNamedLevel({ before, after, senderLevel }: LevelsChange): string | undefined {
  for (const name of namedLevels) {
    const old = before.named.get(name);
    const next = after.named.get(name);
    if (old === next) continue;
    // 10.6.1, 10.6.2
    const isWithinSenderLevel =
      (old ?? defaultLevels[name]) <= senderLevel && (next ?? defaultLevels[name]) <= senderLevel;
    if (!isWithinSenderLevel) return name;
  }
  return undefined;
}

/** Rules 10.7 and 10.8 for `events` or `notifications`. */
function forbiddenListedLevel(
  name: string,
  before: Levels,
  after: Levels,
  { senderLevel }: LevelsChange,
): string | undefined {
  if (before === undefined || after === undefined) return name;
  for (const [key, old, next] of changedEntries(before, after)) {
    // 10.7.1
    if (old !== undefined && !(old <= senderLevel)) return `the level of ${key} in ${name}`;
    // 10.8.1
    if (next !== undefined && !(next <= senderLevel)) return `the level of ${key} in ${name}`;
  }
  return undefined;
}

/** Rules 10.9 and 10.10. */
function forbiddenUserLevel({ before, after, sender, senderLevel }: LevelsChange): string | undefined {
  if (before.users === undefined || after.users === undefined) return 'users';
  for (const [user, old, next] of changedEntries(before.users, after.users)) {
    // 10.9.1
    if (old !== undefined && user !== sender && !(old < senderLevel)) return `the level of ${user}`;
    // 10.10.1
    if (next !== undefined && !(next <= senderLevel)) return `the level of ${user}`;
  }
  return undefined;
}

type ChangedEntry = [key: string, old: number | undefined, next: number | undefined];

/** Entries that were added, changed or removed. */
function* changedEntries(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): Generator<ChangedEntry> {
  for (const [key, old] of before) {
    const next = after.get(key);
    if (next !== old) yield [key, old, next];
  }
  for (const [key, next] of after) if (!before.has(key)) yield [key, undefined, next];
}
