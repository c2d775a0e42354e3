import {
  isJsonObject,
  type JsonObject,
  MatrixError,
  PowerLevels,
  type RoomEvent,
  serverOfUser,
} from '../../protocol/index.ts';
import { type RoomHead, type RoomReader, visibleContent } from '../../room-engine/index.ts';
import type { Rooms } from '../../rooms/index.ts';

/**
 * Power level of the creator in rooms without power levels, and the lowest level that users are given in rooms whose
 * creators have infinite power.
 */
const creatorLevel = 100;

/** A power level that a local room administrator gives to a user. */
interface Grant {
  readonly administrator: string;
  /** Infinite for creators of rooms from room version 12 on. */
  readonly administratorLevel: number;
  readonly userId: string;
  readonly level: number;
}

/** Gives users the highest power level of the local users of a room. */
export class RoomAdministrators {
  readonly #rooms: Pick<Rooms, 'engine' | 'memberships'>;
  readonly #serverName: string;

  constructor(rooms: Pick<Rooms, 'engine' | 'memberships'>, serverName: string) {
    this.#rooms = rooms;
    this.#serverName = serverName;
  }

  /**
   * Gives a user the highest power level of the joined local users. The most powerful local user sends the event. Also
   * invites the user, unless the room is public or the user is joined or invited.
   * @throws MatrixError 400 M_UNKNOWN when no local user may change the power levels
   */
  async add(head: RoomHead, userId: string): Promise<void> {
    const { engine, memberships } = this.#rooms;
    const create = await eventOf(engine, head, 'm.room.create');
    const current = await eventOf(engine, head, 'm.room.power_levels');
    const levels = new PowerLevels(create, current);
    const administrator = this.#mostPowerful(head, levels);
    const stored = isJsonObject(current?.content['users']) ? current.content['users'] : {};
    const administratorLevel = levels.ofUser(administrator);
    // From room version 12 on, creators have infinite power, and no number expresses that. The user is assigned the
    // highest finite level in the room instead, at least `creatorLevel`.
    const level = Number.isFinite(administratorLevel)
      ? administratorLevel
      : Math.max(
          creatorLevel,
          ...Object.keys(stored)
            .map((listed) => levels.ofUser(listed))
            .filter(Number.isFinite),
        );
    if (levels.ofUser(userId) < level) {
      const content = await this.#contentWith(head, { administrator, administratorLevel, userId, level });
      await engine.timeline.append(head.roomId, {
        type: 'm.room.power_levels',
        stateKey: '',
        sender: administrator,
        content,
      });
    }
    const membership = head.membership(userId);
    const isJoinedOrInvited = membership === 'join' || membership === 'invite';
    if (!isJoinedOrInvited && (await joinRuleOf(engine, head)) !== 'public') {
      await memberships.invite(administrator, head.roomId, userId);
    }
  }

  /** Returns the most powerful joined local user who may change the power levels. */
  #mostPowerful(head: RoomHead, levels: PowerLevels): string {
    let mostPowerful: string | undefined;
    for (const [userId, membership] of head.members) {
      if (membership !== 'join' || serverOfUser(userId) !== this.#serverName) continue;
      if (!levels.canSend(userId, 'm.room.power_levels', true)) continue;
      if (mostPowerful === undefined || levels.ofUser(userId) > levels.ofUser(mostPowerful))
        mostPowerful = userId;
    }
    if (mostPowerful === undefined) {
      throw new MatrixError(400, 'M_UNKNOWN', 'No local user in the room may change its power levels');
    }
    return mostPowerful;
  }

  /** Returns the content of the power levels of a room with the level of one more user. */
  async #contentWith(
    head: RoomHead,
    { administrator, administratorLevel, userId, level }: Grant,
  ): Promise<JsonObject> {
    const { engine } = this.#rooms;
    const entry = head.entry('m.room.power_levels', '');
    const stored = entry && (await engine.events.get(entry.nid));
    // Power levels must not list creators, whose power is infinite.
    const content: JsonObject = stored
      ? visibleContent(stored)
      : { users: Number.isFinite(administratorLevel) ? { [administrator]: creatorLevel } : {} };
    const users = isJsonObject(content['users']) ? content['users'] : {};
    return { ...content, users: { ...users, [userId]: level } };
  }
}

/** Returns the join rule of a room; `invite` for rooms without one. */
export async function joinRuleOf(engine: RoomReader, head: RoomHead): Promise<string> {
  const event = await eventOf(engine, head, 'm.room.join_rules');
  const rule = event?.content['join_rule'];
  return typeof rule === 'string' ? rule : 'invite';
}

async function eventOf(engine: RoomReader, head: RoomHead, type: string): Promise<RoomEvent | undefined> {
  const entry = head.entry(type, '');
  return entry && (await engine.events.get(entry.nid))?.event;
}
