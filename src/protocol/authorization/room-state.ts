import type { RoomEvent } from '../event.ts';
import { PowerLevels } from '../power-levels/index.ts';

/** The state of a room as a question: which event has this type and state key, if any. */
export type StateLookup = (type: string, stateKey: string) => RoomEvent | undefined;

/** What the rules ask of the state of a room. `create` is passed along because every rule path needs it. */
export interface RoomState {
  readonly create: RoomEvent;
  readonly lookup: StateLookup;
}

/** The membership of that user, `leave` if there is none or it is no text. */
export function membershipOf(state: RoomState, userId: string): string {
  const membership = state.lookup('m.room.member', userId)?.content['membership'];
  return typeof membership === 'string' ? membership : 'leave';
}

/** The join rule of the room. A room without one, or with one that is no text, can be joined by invitation. */
export function joinRuleOf(state: RoomState): string {
  const rule = state.lookup('m.room.join_rules', '')?.content['join_rule'];
  return typeof rule === 'string' ? rule : 'invite';
}

export function powerLevelsOf(state: RoomState): PowerLevels {
  return new PowerLevels(state.create, state.lookup('m.room.power_levels', ''));
}

/** What follows the first colon of a user id or an event id; `undefined` if there is no colon. */
export function domainOf(id: string): string | undefined {
  const colon = id.indexOf(':');
  return colon < 0 ? undefined : id.slice(colon + 1);
}
