import type { RoomEvent } from '../event.ts';
import { PowerLevels } from '../power-levels/index.ts';

/** Returns the event with a type and state key in the state to which the rules are applied; `undefined` if there is none. */
export type StateLookup = (type: string, stateKey: string) => RoomEvent | undefined;

/** The state that the rules read. `create` is passed along because every rule needs it. */
export interface RoomState {
  readonly create: RoomEvent;
  readonly lookup: StateLookup;
}

/** Returns the membership of that user; `leave` if there is none or it is not text. */
export function membershipOf(state: RoomState, userId: string): string {
  const membership = state.lookup('m.room.member', userId)?.content['membership'];
  return typeof membership === 'string' ? membership : 'leave';
}

/** Returns the join rule of the room; `invite` if there is none or it is not text. */
export function joinRuleOf(state: RoomState): string {
  const rule = state.lookup('m.room.join_rules', '')?.content['join_rule'];
  return typeof rule === 'string' ? rule : 'invite';
}

/** Returns the power levels in force in the room. */
export function powerLevelsOf(state: RoomState): PowerLevels {
  return new PowerLevels(state.create, state.lookup('m.room.power_levels', ''));
}

/** Returns what follows the first colon of a user id or an event id; `undefined` if there is no colon. */
export function domainOf(id: string): string | undefined {
  const colon = id.indexOf(':');
  return colon < 0 ? undefined : id.slice(colon + 1);
}
