import type { RoomEvent } from '../event.ts';
import {
  defaultLevels,
  type Levels,
  type NamedLevel,
  type PowerLevelsContent,
  powerLevelsContentOf,
} from './content.ts';
import { creatorsOf } from './creators.ts';

/** Up to v11, what the creator has as long as nobody has set any power levels. */
const creatorLevelWithoutEvent = 100;

/** What is needed to trigger a notification whose key the content does not name. */
const defaultNotificationLevel = 50;

/**
 * The power levels in force in a room at some state: who has which level, and which level each action needs.
 * Cheap to make: what is read from the two events is kept with the events. A level that can not be understood
 * (up to v9) is `NaN` and so fails `>=`, whichever side it is on.
 * Source: client-server API, `m.room.power_levels`; "Authorization rules" of each room version.
 */
export class PowerLevels {
  readonly #create: RoomEvent | undefined;
  readonly #content: PowerLevelsContent | undefined;

  /** Both are the current state events of the room; either may be missing. */
  constructor(create: RoomEvent | undefined, powerLevels: RoomEvent | undefined) {
    this.#create = create;
    this.#content = powerLevels && powerLevelsContentOf(powerLevels);
  }

  /** The level of that user; `Infinity` for the creators of a room since v12. */
  ofUser(userId: string): number {
    const create = this.#create;
    if (create?.version.privilegedCreators && creatorsOf(create).has(userId)) return Number.POSITIVE_INFINITY;
    if (this.#content !== undefined) {
      return lookUp(this.#content.users, userId) ?? this.required('users_default');
    }
    const isCreator = create !== undefined && creatorsOf(create).has(userId);
    return isCreator ? creatorLevelWithoutEvent : defaultLevels.users_default;
  }

  /** The level that banning, kicking, inviting or redacting needs, or that stands for what is not listed. */
  required(name: NamedLevel): number {
    return this.#content?.named.get(name) ?? defaultLevels[name];
  }

  /** The level that sending such an event needs. Membership events go by `required` instead. */
  requiredToSend(type: string, isState: boolean): number {
    const level = this.#content && lookUp(this.#content.events, type);
    return level ?? this.required(isState ? 'state_default' : 'events_default');
  }

  /** The level that triggering this notification needs, for instance `room` for `@room`. */
  requiredToNotify(key: string): number {
    const level = this.#content && lookUp(this.#content.notifications, key);
    return level ?? defaultNotificationLevel;
  }

  /** Whether the user reaches one of the named levels. */
  reaches(userId: string, name: NamedLevel): boolean {
    return this.ofUser(userId) >= this.required(name);
  }

  /** Whether the level of the user lets them send such an event. */
  canSend(userId: string, type: string, isState: boolean): boolean {
    return this.ofUser(userId) >= this.requiredToSend(type, isState);
  }

  /** Whether the level of the user lets them trigger this notification. */
  canNotify(userId: string, key: string): boolean {
    return this.ofUser(userId) >= this.requiredToNotify(key);
  }
}

/** The level under that key, `NaN` if there is something else than a list of levels. */
function lookUp(levels: Levels, key: string): number | undefined {
  return levels === undefined ? Number.NaN : levels.get(key);
}
