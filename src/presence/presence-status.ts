import type { JsonObject } from '../protocol/index.ts';

export type PresenceState = 'online' | 'unavailable' | 'offline';

/** The presence of a user at some time. Source: client-server API, "Presence". */
export interface PresenceStatus {
  readonly presence: PresenceState;
  readonly statusMsg: string | undefined;
  /** Milliseconds since the epoch; 0 when the user was never active. */
  readonly lastActive: number;
  /** Whether the user is active at this moment; clients then ignore `lastActive`. */
  readonly currentlyActive: boolean;
}

/** Computes the presence of one user at any time. */
export interface PresenceSource {
  /** @param now milliseconds since the epoch */
  at(now: number): PresenceStatus;
  /** Returns the earliest time, in milliseconds since the epoch, at which the result of `at` may change by itself. */
  nextChange(now: number): number | undefined;
}

/** The presence of a user who was never active. */
export const offline: PresenceStatus = {
  presence: 'offline',
  statusMsg: undefined,
  lastActive: 0,
  currentlyActive: false,
};

/** Whether a change is sent to other users; a changed `lastActive` alone is not. */
export const mustBeSent = (before: PresenceStatus, now: PresenceStatus): boolean =>
  before.presence !== now.presence ||
  before.statusMsg !== now.statusMsg ||
  before.currentlyActive !== now.currentlyActive;

/** Returns the content of an `m.presence` event. It is also the response of `GET /presence/{userId}/status`. */
export function statusContent(status: PresenceStatus, now: number): JsonObject {
  const { presence, statusMsg, lastActive, currentlyActive } = status;
  return {
    presence,
    ...(lastActive > 0 ? { last_active_ago: Math.max(0, now - lastActive) } : undefined),
    ...(statusMsg === undefined ? undefined : { status_msg: statusMsg }),
    ...(presence === 'online' ? { currently_active: currentlyActive } : undefined),
  };
}
