import type { Clock } from '../../kernel/clock.ts';
import { decodePosition, encodePosition, type Streams } from '../../kernel/streams/index.ts';
import { type ClientEvent, invalidParam } from '../../protocol/index.ts';
import {
  type ClientEvents,
  type RoomEngine,
  RoomView,
  type Viewer,
  type VisibleEvent,
} from '../../rooms/index.ts';
import type { RoomWaiters } from './room-waiters.ts';

export interface EventStreamParts {
  readonly engine: RoomEngine;
  readonly streams: Streams;
  readonly clock: Clock;
  readonly clientEvents: ClientEvents;
  readonly waiters: RoomWaiters;
  /** Rooms that no sync mentions. */
  readonly excludedRooms: ReadonlySet<string>;
}

export interface EventStreamRequest {
  readonly from: string | undefined;
  /** Milliseconds to wait when there is nothing to say. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

export interface EventChunk {
  readonly start: string;
  readonly end: string;
  readonly chunk: readonly ClientEvent[];
}

/** Longest wait, whatever the client asks for, in milliseconds. */
const longestWait = 5 * 60 * 1000;

/** Events of one answer, and pages of a room that are looked through for it while nothing is found. */
const [mostEvents, mostPages] = [100, 10];

/** What was found in a range of the streams. */
interface Found {
  readonly events: readonly VisibleEvent[];
  /** Up to where it was looked. */
  readonly reached: number;
}

/** Events as they come, without anything around them. Source: client-server API, `GET /events`. */
export class EventStream {
  readonly #parts: EventStreamParts;

  constructor(parts: EventStreamParts) {
    this.#parts = parts;
  }

  /**
   * The next events of a room, for whoever may read it.
   * Source: client-server API, "Room Previews".
   * @throws MatrixError M_FORBIDDEN for users who may not, M_INVALID_PARAM for a foreign token
   */
  ofRoom(viewer: Viewer, roomId: string, request: EventStreamRequest): Promise<EventChunk> {
    return this.#follow(viewer, request, async (after, upTo) => {
      const { engine } = this.#parts;
      const view = await RoomView.forReading(engine, await engine.heads.get(roomId), viewer.userId);
      return { ...(await this.#next(view, after, upTo)), roomIds: [roomId] };
    });
  }

  /** The next events of all rooms that the user is in. @throws MatrixError M_INVALID_PARAM for a foreign token */
  ofUser(viewer: Viewer, request: EventStreamRequest): Promise<EventChunk> {
    const { engine, excludedRooms } = this.#parts;
    return this.#follow(viewer, request, async (after, upTo) => {
      const joined = [...(await engine.userRooms.of(viewer.userId)).values()].filter(
        ({ membership, roomId }) => membership === 'join' && !excludedRooms.has(roomId),
      );
      const changed = await engine.events.changedRooms(
        joined.map(({ roomNid }) => roomNid),
        after,
      );
      const events: VisibleEvent[] = [];
      let reached = upTo;
      for (const { roomId, roomNid } of joined) {
        const head = changed.has(roomNid) ? await engine.heads.get(roomId) : undefined;
        if (!head) continue;
        const found = await this.#next(await RoomView.open(engine, head, viewer.userId), after, upTo);
        events.push(...found.events);
        reached = Math.min(reached, found.reached);
      }
      events.sort((one, other) => (one.stored.stream ?? 0) - (other.stored.stream ?? 0));
      return { events, reached, roomIds: joined.map(({ roomId }) => roomId) };
    });
  }

  /** @param read the events of a range, and the rooms in which to wait for more */
  async #follow(
    viewer: Viewer,
    { from, timeout, signal }: EventStreamRequest,
    read: (after: number, upTo: number) => Promise<Found & { roomIds: string[] }>,
  ): Promise<EventChunk> {
    const { streams, clock, waiters, clientEvents } = this.#parts;
    const after = from === undefined ? streams.current : decodePosition(from);
    if (after > streams.current) throw invalidParam('This token is from the future');
    const deadline = clock.monotonic() + Math.min(Math.max(0, timeout), longestWait);
    for (;;) {
      const upTo = streams.current;
      const { events, reached, roomIds } = await read(after, upTo);
      const remaining = deadline - clock.monotonic();
      if (events.length > 0 || reached < upTo || remaining <= 0 || signal.aborted) {
        const shown = events.filter(({ stored }) => (stored.stream ?? 0) <= reached).slice(0, mostEvents);
        const last = shown.length < events.length ? shown.at(-1)?.stored.stream : undefined;
        return {
          start: encodePosition(after),
          end: encodePosition(last ?? reached),
          chunk: await clientEvents.render(shown, viewer),
        };
      }
      if (streams.current === upTo) await waiters.wait(roomIds, remaining, signal);
    }
  }

  /** About as many as an answer holds. */
  async #next(view: RoomView, after: number, upTo: number): Promise<Found> {
    const { engine } = this.#parts;
    const events: VisibleEvent[] = [];
    let reached = after;
    for (let page = 0; page < mostPages && events.length < mostEvents; page++) {
      const range = { after: reached, upTo, limit: mostEvents, direction: 'forward' } as const;
      const read = await engine.events.timeline(view.head.roomNid, range);
      events.push(...(await view.shown(read)));
      const last = read.at(-1)?.stream;
      if (last === undefined || read.length < mostEvents) return { events, reached: upTo };
      reached = last;
    }
    return { events, reached };
  }
}
