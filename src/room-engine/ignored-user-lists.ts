import { isDummyEvent } from '../protocol/index.ts';

/** Whom users ignore; declared here, supplied at composition. */
export interface IgnoredUserLists {
  /** The users whom a user ignores. Returns at once when they are in memory. */
  of(userId: string): ReadonlySet<string> | Promise<ReadonlySet<string>>;
}

const nobody: ReadonlySet<string> = new Set();

export const noIgnoredUsers: IgnoredUserLists = { of: () => nobody };

/**
 * Whether an event is kept from somebody who ignores these users: state is not, so that a room looks the same to all.
 * What servers send for the room's history alone is kept from everybody.
 * Source: client-server API, "Ignoring Users".
 */
export function isHiddenFromUser(
  event: { readonly type: string; readonly sender: string; readonly stateKey?: string | undefined },
  ignored: ReadonlySet<string>,
): boolean {
  return event.stateKey === undefined && (ignored.has(event.sender) || isDummyEvent(event));
}
