import { isDummyEvent } from '../protocol/index.ts';

/** Looks up ignored users; supplied at composition. */
export interface IgnoredUserLists {
  /** Returns the users that a user ignores; synchronously when they are cached. */
  of(userId: string): ReadonlySet<string> | Promise<ReadonlySet<string>>;
}

const noUsers: ReadonlySet<string> = new Set();

/** The look-up of a server on which no user ignores other users. */
export const noIgnoredUsers: IgnoredUserLists = { of: () => noUsers };

/**
 * Returns whether an event is hidden from a user who ignores these users. State events are not hidden, so that a room
 * looks the same to all members. Dummy events, which servers send to merge forward extremities, are hidden from all
 * users.
 * Source: client-server API, "Ignoring Users".
 */
export function isHiddenFromUser(
  event: { readonly type: string; readonly sender: string; readonly stateKey?: string | undefined },
  ignored: ReadonlySet<string>,
): boolean {
  return event.stateKey === undefined && (ignored.has(event.sender) || isDummyEvent(event));
}
