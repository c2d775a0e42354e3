import { unknown } from '../errors.ts';
import type { RoomEvent } from '../event.ts';
import type { JsonObject } from '../json.ts';
import { relationOf } from './relation.ts';

/**
 * Maximum number of parents to follow to find the thread of an event. Source: client-server API, "Push
 * Notifications".
 */
export const MAX_THREAD_HOPS = 3;

/** The thread id of all events outside of threads. Source: client-server API, "Threaded read receipts". */
export const MAIN_TIMELINE = 'main';

/**
 * Whether an event with this content can be a thread root: it must not have a relation itself. A plain reply
 * has none, because it has no `rel_type`.
 * Source: client-server API, "Threading".
 */
export const canBeThreadRoot = (content: JsonObject): boolean => relationOf(content) === undefined;

/**
 * Refuses a thread root that has a relation itself.
 * Source: client-server API, "Validation of m.thread relationships".
 * @throws MatrixError M_UNKNOWN (400)
 */
export function checkThreadRoot(content: JsonObject): void {
  if (!canBeThreadRoot(content)) {
    throw unknown('Cannot start a thread from an event with a relation', 400);
  }
}

/** The summary of a thread that is bundled with its root. */
export interface ThreadSummary<Event> {
  readonly latestEvent: Event;
  readonly count: number;
  readonly currentUserParticipated: boolean;
}

/**
 * Summarises a thread; `undefined` if `replies` is empty.
 * Source: client-server API, "Server-side aggregation of m.thread relationships".
 * @param replies the events of the thread that the user may see, without redacted events and events of ignored users,
 * in topological order
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
