import type { RoomEvent } from '../event.ts';
import {
  defaultLevels,
  type Levels,
  type NamedLevel,
  type PowerLevelsContent,
  powerLevelsContentOf,
} from './content.ts';
import { creatorsOf } from './creators.ts';

/** The level of the creator as long as the room has no power levels event, up to v11. */
const creatorLevelWithoutEvent = 100;

/** The level required for a notification whose key the content does not list. */
const defaultNotificationLevel = 50;

/**
 * The power levels in force in a room state: the level of each user, and the level that each action requires. Cheap to
 * create, because the content of the two events is parsed once. A level that cannot be read (up to v9) is `NaN`: every
 * comparison with it is false.
 * Source: client-server API, `m.room.power_levels`; "Authorization rules" of each room version.
 */
export class PowerLevels {
  readonly #create: RoomEvent | undefined;
  readonly #content: PowerLevelsContent | undefined;

  /** Both are events of one room state; either may be missing. */
  constructor(create: RoomEvent | undefined, powerLevels: RoomEvent | undefined) {
    this.#create = create;
    this.#content = powerLevels && powerLevelsContentOf(powerLevels);
  }

  /** Returns the level of that user; `Infinity` for the creators of a room since v12. */
  ofUser(userId: string): number {
    const create = this.#create;
    if (create?.version.privilegedCreators && creatorsOf(create).has(userId)) return Number.POSITIVE_INFINITY;
    if (this.#content !== undefined) {
      return levelOf(this.#content.users, userId) ?? this.required('users_default');
    }
    const isCreator = create !== undefined && creatorsOf(create).has(userId);
    return isCreator ? creatorLevelWithoutEvent : defaultLevels.users_default;
  }

  /** Returns a named level, for instance the level required to ban, or `state_default`. */
  required(name: NamedLevel): number {
    return this.#content?.named.get(name) ?? defaultLevels[name];
  }

  /** Returns the level required to send an event of this type. For membership events `required` applies instead. */
  requiredToSend(type: string, isState: boolean): number {
    const level = this.#content && levelOf(this.#content.events, type);
    return level ?? this.required(isState ? 'state_default' : 'events_default');
  }

  /** Returns the level required to trigger this notification, for instance `room` for `@room`. */
  requiredToNotify(key: string): number {
    const level = this.#content && levelOf(this.#content.notifications, key);
    return level ?? defaultNotificationLevel;
  }

  /** Whether the user's level reaches a named level. */
  reaches(userId: string, name: NamedLevel): boolean {
    return this.ofUser(userId) >= this.required(name);
  }

  /** Whether the user's level permits sending an event of this type. */
  canSend(userId: string, type: string, isState: boolean): boolean {
    return this.ofUser(userId) >= this.requiredToSend(type, isState);
  }

  /** Whether the user's level permits triggering this notification. */
  canNotify(userId: string, key: string): boolean {
    return this.ofUser(userId) >= this.requiredToNotify(key);
  }
}

/**
 * Returns the level of that key; `undefined` if the key is not listed, `NaN` if the content has something other than an
 * object in the place of the levels.
 */
function levelOf(levels: Levels, key: string): number | undefined {
  return levels === undefined ? Number.NaN : levels.get(key);
}
