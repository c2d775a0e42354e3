import { isJsonObject, type JsonValue } from '../json.ts';

/** The values of `history_visibility`. Source: client-server API, "m.room.history_visibility". */
export type HistoryVisibility = 'world_readable' | 'shared' | 'invited' | 'joined';

export type Membership = 'invite' | 'join' | 'knock' | 'leave' | 'ban';

const VISIBILITIES: ReadonlySet<unknown> = new Set(['world_readable', 'shared', 'invited', 'joined']);
const MEMBERSHIPS: ReadonlySet<unknown> = new Set(['invite', 'join', 'knock', 'leave', 'ban']);

const isVisibility = (value: unknown): value is HistoryVisibility => VISIBILITIES.has(value);
/** Whether a value is one of the memberships of the specification. */
export const isMembership = (value: unknown): value is Membership => MEMBERSHIPS.has(value);

/**
 * Reads the content of an `m.room.history_visibility` event; `shared` if there is no event (`undefined`) or
 * the value is unknown.
 */
export function historyVisibilityOf(content: JsonValue | undefined): HistoryVisibility {
  const value = isJsonObject(content) ? content['history_visibility'] : undefined;
  return isVisibility(value) ? value : 'shared';
}

/**
 * Reads the content of an `m.room.member` event; `leave` if there is no event (`undefined`) or the value is
 * unknown.
 */
export function membershipOf(content: JsonValue | undefined): Membership {
  const value = isJsonObject(content) ? content['membership'] : undefined;
  return isMembership(value) ? value : 'leave';
}
