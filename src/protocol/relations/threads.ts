import { unknown } from '../errors.ts';
import type { RoomEvent } from '../event.ts';
import type { JsonObject } from '../json.ts';
import { relationOf } from './relation.ts';

/** How many parents to look at to find the thread of an event. Source: client-server API, "Push Notifications". */
export const MAX_THREAD_HOPS = 3;

/** The thread id of everything outside of threads. Source: client-server API, "Threaded read receipts". */
export const MAIN_TIMELINE = 'main';

/**
 * Whether an event with this content can be the root of a thread: not when it relates to another itself. A plain reply
 * does not, for it has no `rel_type`.
 * Source: client-server API, "Threading".
 */
export const canBeThreadRoot = (content: JsonObject): boolean => relationOf(content) === undefined;

/**
 * Refuses to start a thread where there can be none. Throws M_UNKNOWN (400).
 * Source: client-server API, "Validation of m.thread relationships".
 */
export function checkThreadRoot(content: JsonObject): void {
  if (!canBeThreadRoot(content)) {
    throw unknown('A thread can not be started from an event that relates to another', 400);
  }
}

/** What a client is told about a thread along with its root. */
export interface ThreadSummary<Event> {
  readonly latestEvent: Event;
  readonly count: number;
  readonly currentUserParticipated: boolean;
}

/**
 * Summarises a thread, undefined when no reply is left.
 * Source: client-server API, "Server-side aggregation of m.thread relationships".
 *
 * @param replies the events of the thread that the user may see, without those of ignored users and without redacted
 *   ones, in topological order
 */
export function summariseThread<Event extends Pick<RoomEvent, 'sender'>>(
  root: Pick<RoomEvent, 'sender'>,
  replies: readonly Event[],
  userId: string,
): ThreadSummary<Event> | undefined {
  const latestEvent = replies.at(-1);
  if (latestEvent === undefined) return undefined;
  const currentUserParticipated = root.sender === userId || replies.some(({ sender }) => sender === userId);
  return { latestEvent, count: replies.length, currentUserParticipated };
}
