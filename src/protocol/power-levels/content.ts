import type { RoomEvent } from '../event.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { PowerLevelNumbers } from '../room-versions.ts';
import { levelReader, type ReadLevel } from './level-values.ts';

/** The levels directly in the content of `m.room.power_levels`. */
export type NamedLevel =
  | 'users_default'
  | 'events_default'
  | 'state_default'
  | 'ban'
  | 'redact'
  | 'kick'
  | 'invite';

/**
 * The value of each named level if the content or the whole event lacks it.
 * Source: client-server API, `m.room.power_levels`.
 */
export const defaultLevels: Readonly<Record<NamedLevel, number>> = {
  users_default: 0,
  events_default: 0,
  state_default: 50,
  ban: 50,
  redact: 50,
  kick: 50,
  invite: 0,
};

/** The names of all named levels. */
export const namedLevels = Object.keys(defaultLevels) as readonly NamedLevel[];

/**
 * Levels by user id, event type or notification key; `undefined` if the content has something other than an
 * object there.
 */
export type Levels = ReadonlyMap<string, number> | undefined;

/**
 * The content of an `m.room.power_levels` event, as its room version reads it. Levels that the event lacks are
 * missing here too; values that are not levels are `NaN` (see `ReadLevel`).
 */
export interface PowerLevelsContent {
  /** Levels at the top level of the content, for instance `ban` and `events_default`. */
  readonly named: ReadonlyMap<NamedLevel, number>;
  readonly users: Levels;
  readonly events: Levels;
  readonly notifications: Levels;
}

/** Parses the content of an `m.room.power_levels` event. Never throws, whatever the content is. */
export function parsePowerLevels(content: JsonObject, numbers: PowerLevelNumbers): PowerLevelsContent {
  const read = levelReader(numbers);
  // Levels of old rooms may be null, which other servers take as absent.
  const absent = numbers === 'integers' ? undefined : null;
  const named = new Map<NamedLevel, number>();
  for (const name of namedLevels) {
    const value = content[name];
    if (value !== undefined && value !== absent) named.set(name, read(value));
  }
  return {
    named,
    users: readLevels(content['users'], read),
    events: readLevels(content['events'], read),
    notifications: readLevels(content['notifications'], read),
  };
}

const noLevels: ReadonlyMap<string, number> = new Map();

function readLevels(value: JsonValue | undefined, read: ReadLevel): Levels {
  if (value === undefined) return noLevels;
  if (!isJsonObject(value)) return undefined;
  const levels = new Map<string, number>();
  for (const [key, level] of Object.entries(value)) {
    if (level !== undefined) levels.set(key, read(level));
  }
  return levels;
}

const parsed = new WeakMap<RoomEvent, PowerLevelsContent>();

/** Returns the parsed content of an `m.room.power_levels` event, cached as long as the event lives. */
export function powerLevelsContentOf(event: RoomEvent): PowerLevelsContent {
  let content = parsed.get(event);
  if (content === undefined) {
    content = parsePowerLevels(event.content, event.version.powerLevelNumbers);
    parsed.set(event, content);
  }
  return content;
}
