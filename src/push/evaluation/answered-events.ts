import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { PushEvents } from './push-events.ts';

/** Maximum number of the newest events of a room that are searched for events of a user. */
const maxSearched = 100;

/**
 * Maps the root of each thread (`undefined`: the main timeline) to the stream position of a user's newest event in the
 * thread.
 */
type NewestByThread = ReadonlyMap<string | undefined, number>;

const noEvents: NewestByThread = new Map();

/** A finished search in the database. */
interface Search {
  readonly head: RoomHead;
  readonly userId: string;
  /** Position of the newest event in memory at the time of the search. */
  readonly newest: number | undefined;
  readonly newestByThread: NewestByThread;
}

/**
 * Finds out whether users have answered events: a user who sends an event has read the events before it in its thread,
 * also without a receipt. Exceptions are redactions and membership events, as in unread counts.
 * Source: client-server API, "Marking notifications as read".
 */
export class AnsweredEvents {
  readonly #engine: RoomReader;
  readonly #events: PushEvents;
  /** The last search. It is kept because the pending events of a user in a room are looked up one after the other. */
  #lastSearch: Search | undefined;

  constructor(engine: RoomReader, events: PushEvents) {
    this.#engine = engine;
    this.#events = events;
  }

  /**
   * Reports whether a user has answered this event: one of the 100 newest events of the room is a later event of the
   * user in the same thread.
   */
  async has(userId: string, stored: StoredEvent): Promise<boolean> {
    const { roomId } = stored.event;
    const head = this.#engine.heads.peek(roomId) ?? (await this.#engine.heads.get(roomId));
    const { stream } = stored;
    if (!head || stream === undefined) return false;
    const newest = await this.#newestOf(userId, head, stream);
    if (newest.size === 0) return false;
    const { threadId } = await this.#events.get(head, stored);
    return (newest.get(threadId) ?? 0) > stream;
  }

  /** Finds the user's newest events among the newest events of the room; events up to `after` may be missing. */
  async #newestOf(userId: string, head: RoomHead, after: number): Promise<NewestByThread> {
    const { recent, roomNid } = head;
    const isAfter = ({ stream = 0 }: StoredEvent) => stream > after;
    // Most searches need no query: no event is newer than `after`, or all newer events are in memory.
    const first = recent.findIndex(isAfter);
    if (recent.length > 0 && first === -1) return noEvents;
    if (first > 0) return this.#newestByThread(userId, head, recent.slice(first).reverse());
    const newest = recent.at(-1)?.stream;
    const last = this.#lastSearch;
    if (last && last.head === head && last.userId === userId && last.newest === newest)
      return last.newestByThread;
    const range = { limit: maxSearched, direction: 'backward' } as const;
    const newestByThread = await this.#newestByThread(
      userId,
      head,
      await this.#engine.events.timeline(roomNid, range),
    );
    this.#lastSearch = { head, userId, newest, newestByThread };
    return newestByThread;
  }

  /** @param events newest first */
  async #newestByThread(
    userId: string,
    head: RoomHead,
    events: readonly StoredEvent[],
  ): Promise<NewestByThread> {
    const newestByThread = new Map<string | undefined, number>();
    for (const stored of events) {
      const { sender, type } = stored.event;
      if (sender !== userId || type === 'm.room.redaction' || type === 'm.room.member') continue;
      const { threadId } = await this.#events.get(head, stored);
      if (!newestByThread.has(threadId)) newestByThread.set(threadId, stored.stream ?? 0);
    }
    return newestByThread;
  }
}
