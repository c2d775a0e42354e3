import type { Clock } from '../../kernel/clock.ts';
import { decodePosition, encodePosition, type StreamReader } from '../../kernel/streams/index.ts';
import { type ClientEvent, invalidParam } from '../../protocol/index.ts';
import type { RoomReader, UserRoom } from '../../room-engine/index.ts';
import { type ClientEvents, RoomView, type Viewer, type VisibleEvent } from '../../rooms/index.ts';
import type { Changes } from '../feeds/feed.ts';
import type { Feeds } from '../feeds/feeds.ts';
import type { ShownInvites } from '../shown-invites.ts';
import { timelineBit } from '../sources/source-list.ts';
import type { RoomWaiters } from './room-waiters.ts';

export interface EventStreamDeps {
  readonly engine: RoomReader;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly clientEvents: ClientEvents;
  readonly waiters: RoomWaiters;
  readonly feeds: Feeds;
  readonly shownInvites: ShownInvites;
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
const maxWait = 5 * 60 * 1000;

/** Events of one answer, and pages of a room that are looked through for it while nothing is found. */
const [maxEvents, maxPages] = [100, 10];

/** What was found in a range of the streams. */
interface Found {
  readonly events: readonly VisibleEvent[];
  /** Up to where it was looked. */
  readonly reached: number;
}

/** What was found, and how to wait for more. */
interface Followed extends Found {
  wait(remaining: number): Promise<void>;
}

/** Events as they come, without anything around them. Source: client-server API, `GET /events`. */
export class EventStream {
  readonly #deps: EventStreamDeps;

  constructor(deps: EventStreamDeps) {
    this.#deps = deps;
  }

  /**
   * The next events of a room, for whoever may read it.
   * Source: client-server API, "Room Previews".
   * @throws MatrixError M_FORBIDDEN for users who may not, M_INVALID_PARAM for a foreign token
   */
  ofRoom(viewer: Viewer, roomId: string, request: EventStreamRequest): Promise<EventChunk> {
    const { engine, streams, waiters } = this.#deps;
    return this.#follow(viewer, request, async (after, upTo) => {
      const view = await RoomView.forReading(engine, await engine.heads.get(roomId), viewer.userId);
      const wait = async (remaining: number) => {
        if (streams.current === upTo) await waiters.wait([roomId], remaining, request.signal);
      };
      return { ...(await this.#next(view, after, upTo)), wait };
    });
  }

  /**
   * The next events of all rooms that the user is in, and what becomes of the user in others: invitations, and how they
   * came out of a room.
   * @throws MatrixError M_INVALID_PARAM for a foreign token
   */
  ofUser(viewer: Viewer, request: EventStreamRequest): Promise<EventChunk> {
    const { feeds, streams } = this.#deps;
    return this.#follow(viewer, request, async (after, upTo) => {
      const feed = await feeds.open(viewer.userId);
      const rooms = await this.#changedRooms(viewer.userId, after, feed.changes(after, upTo));
      const events: VisibleEvent[] = [];
      let reached = upTo;
      for (const room of rooms) {
        const found = await this.#ofOne(viewer.userId, room, after, upTo);
        events.push(...found.events);
        reached = Math.min(reached, found.reached);
      }
      events.sort((one, other) => (one.stored.stream ?? 0) - (other.stored.stream ?? 0));
      const wait = async (remaining: number) => {
        // What comes to an end without a change for the user is nothing to look at again.
        const meanwhile = feed.changes(upTo, streams.current);
        if (meanwhile && meanwhile.rooms.size === 0) await feeds.wait(feed, remaining, request.signal);
      };
      return { events, reached, wait };
    });
  }

  /** Rooms of a user in which something may have happened after a position. */
  async #changedRooms(userId: string, after: number, changes: Changes | undefined): Promise<UserRoom[]> {
    const { engine, excludedRooms } = this.#deps;
    const all = [...(await engine.userRooms.of(userId)).values()].filter(
      ({ roomId, forgotten }) => !excludedRooms.has(roomId) && !forgotten,
    );
    if (changes) {
      return all.filter(({ roomId }) => ((changes.rooms.get(roomId) ?? 0) & timelineBit) !== 0);
    }
    const joined = all.filter(({ membership }) => membership === 'join');
    const changed = await engine.events.changedRooms(
      joined.map(({ roomNid }) => roomNid),
      after,
    );
    return all.filter(({ membership, roomNid, stream }) =>
      membership === 'join' ? changed.has(roomNid) : stream > after,
    );
  }

  /** What a user is told of one of their rooms. */
  async #ofOne(userId: string, room: UserRoom, after: number, upTo: number): Promise<Found> {
    const { engine, shownInvites } = this.#deps;
    const { roomId, membership, stream } = room;
    const nothing = { events: [], reached: upTo };
    const head = await engine.heads.get(roomId);
    if (!head) return nothing;
    const view = await RoomView.open(engine, head, userId);
    if (membership === 'join') return this.#next(view, after, upTo);
    if (stream <= after || stream > upTo) return nothing;
    if (membership === 'invite' && !(await shownInvites.isShown(userId, room))) return nothing;
    const past = view.hasBeenJoined ? await this.#next(view, after, stream) : nothing;
    if (past.reached < Math.min(stream, upTo)) return past;
    const own = await engine.events.get(room.eventNid);
    const isKnown = !own || past.events.some(({ stored }) => stored.nid === own.nid);
    // An invitation to a room that this server is not in has no place of its own on a timeline.
    const told: VisibleEvent[] = isKnown ? [] : [{ stored: { ...own, stream }, membership }];
    return { events: [...past.events, ...told], reached: upTo };
  }

  /** @param read the events of a range */
  async #follow(
    viewer: Viewer,
    { from, timeout, signal }: EventStreamRequest,
    read: (after: number, upTo: number) => Promise<Followed>,
  ): Promise<EventChunk> {
    const { streams, clock, clientEvents } = this.#deps;
    const after = from === undefined ? streams.current : decodePosition(from);
    if (after > streams.current) throw invalidParam('This token is from the future');
    const deadline = clock.monotonic() + Math.min(Math.max(0, timeout), maxWait);
    for (;;) {
      const upTo = streams.current;
      const { events, reached, wait } = await read(after, upTo);
      const remaining = deadline - clock.monotonic();
      if (events.length > 0 || reached < upTo || remaining <= 0 || signal.aborted) {
        const shown = events.filter(({ stored }) => (stored.stream ?? 0) <= reached).slice(0, maxEvents);
        const last = shown.length < events.length ? shown.at(-1)?.stored.stream : undefined;
        return {
          start: encodePosition(after),
          end: encodePosition(last ?? reached),
          chunk: await clientEvents.render(shown, viewer),
        };
      }
      await wait(remaining);
    }
  }

  /** About as many as an answer holds. */
  async #next(view: RoomView, after: number, upTo: number): Promise<Found> {
    const { engine } = this.#deps;
    const events: VisibleEvent[] = [];
    let reached = after;
    for (let page = 0; page < maxPages && events.length < maxEvents; page++) {
      const range = { after: reached, upTo, limit: maxEvents, direction: 'forward' } as const;
      const read = await engine.events.timeline(view.head.roomNid, range);
      events.push(...(await view.displayable(read)));
      const last = read.at(-1)?.stream;
      if (last === undefined || read.length < maxEvents) return { events, reached: upTo };
      reached = last;
    }
    return { events, reached };
  }
}
