import type { JsonObject } from '../protocol/index.ts';

export type PresenceState = 'online' | 'unavailable' | 'offline';

/** How present a user is at some time. Source: client-server API, "Presence". */
export interface PresenceStatus {
  readonly presence: PresenceState;
  readonly statusMsg: string | undefined;
  /** Milliseconds since the epoch; 0 when the user was never seen to do anything. */
  readonly lastActive: number;
  /** Doing something just now, so that `lastActive` says little. */
  readonly currentlyActive: boolean;
}

/** Knows how present one user is. */
export interface PresenceSource {
  /** @param now milliseconds since the epoch */
  at(now: number): PresenceStatus;
  /** When `at` will next give something else, if nothing happens until then. */
  nextChange(now: number): number | undefined;
}

export const offline: PresenceStatus = {
  presence: 'offline',
  statusMsg: undefined,
  lastActive: 0,
  currentlyActive: false,
};

/** Whether others are to be told. Time that passes is nothing to tell. */
export const isNews = (before: PresenceStatus, now: PresenceStatus): boolean =>
  before.presence !== now.presence ||
  before.statusMsg !== now.statusMsg ||
  before.currentlyActive !== now.currentlyActive;

/** The content of an `m.presence` event, and the answer to a question about presence. */
export function statusContent(status: PresenceStatus, now: number): JsonObject {
  const { presence, statusMsg, lastActive, currentlyActive } = status;
  return {
    presence,
    ...(lastActive > 0 ? { last_active_ago: Math.max(0, now - lastActive) } : undefined),
    ...(statusMsg === undefined ? undefined : { status_msg: statusMsg }),
    ...(presence === 'online' ? { currently_active: currentlyActive } : undefined),
  };
}
