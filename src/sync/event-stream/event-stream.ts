import type { Clock } from '../../kernel/clock.ts';
import { decodePosition, encodePosition, type StreamReader } from '../../kernel/streams/index.ts';
import { invalidParam, type JsonObject } from '../../protocol/index.ts';
import type { RoomReader, UserRoom } from '../../room-engine/index.ts';
import { type ClientEvents, RoomView, type Viewer, type VisibleEvent } from '../../rooms/index.ts';
import type { Changes } from '../feeds/feed.ts';
import type { Feeds } from '../feeds/feeds.ts';
import type { ShownInvites } from '../shown-invites.ts';
import { timelineBit } from '../sources/source-list.ts';
import type { OtherEvents } from './other-events.ts';
import type { RoomWaiters } from './room-waiters.ts';

export interface EventStreamDeps {
  readonly engine: RoomReader;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly clientEvents: ClientEvents;
  readonly waiters: RoomWaiters;
  readonly feeds: Feeds;
  readonly shownInvites: ShownInvites;
  readonly otherEvents: OtherEvents;
  /** Rooms that are left out of every sync. */
  readonly excludedRooms: ReadonlySet<string>;
}

export interface EventStreamRequest {
  readonly from: string | undefined;
  /** Maximum milliseconds to wait while there are no events. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

export interface EventChunk {
  readonly start: string;
  readonly end: string;
  readonly chunk: readonly JsonObject[];
}

/** Maximum wait in milliseconds, whatever the client requests. */
const maxWait = 5 * 60 * 1000;

/** Maximum number of events of one answer. */
const maxEvents = 100;

/** Maximum number of pages of a room that are searched for visible events. */
const maxPages = 10;

/** The events of a range of the streams. */
interface RangeEvents {
  readonly events: readonly VisibleEvent[];
  /** The streams were read up to this position. */
  readonly reached: number;
}

/** The events of a range, the data that is not on timelines, and how to wait for later events. */
interface FollowedRange extends RangeEvents {
  /** Returns the data that is not on timelines, up to a position of the range. */
  otherData?(upTo: number): Promise<readonly JsonObject[]>;
  /** Waits for later events or other data, at most for `remaining` milliseconds. */
  wait(remaining: number): Promise<void>;
}

/** Returns new events as one list, without the sections of a sync. Source: client-server API, `GET /events`. */
export class EventStream {
  readonly #deps: EventStreamDeps;

  constructor(deps: EventStreamDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the next events of a room that the viewer may read. Source: client-server API, "Room Previews".
   * @throws MatrixError M_FORBIDDEN when the viewer may not read the room, M_INVALID_PARAM for an unknown token
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
   * Returns the next events of the rooms that the user is joined to; of other rooms, a new membership event of the user
   * and the events before it that the user may see. Receipts, typing, presence, tags and account data follow.
   * @throws MatrixError M_INVALID_PARAM for an unknown token
   */
  ofUser(viewer: Viewer, request: EventStreamRequest): Promise<EventChunk> {
    const { feeds, streams, otherEvents } = this.#deps;
    return this.#follow(viewer, request, async (after, upTo) => {
      const feed = await feeds.open(viewer.userId);
      const changes = feed.changes(after, upTo);
      const rooms = await this.#changedRooms(viewer.userId, after, changes);
      const events: VisibleEvent[] = [];
      let reached = upTo;
      for (const room of rooms) {
        const newEvents = await this.#newEventsOf(viewer.userId, room, after, upTo);
        events.push(...newEvents.events);
        reached = Math.min(reached, newEvents.reached);
      }
      events.sort((a, b) => (a.stored.stream ?? 0) - (b.stored.stream ?? 0));
      const otherData = (to: number) => otherEvents.since(viewer.userId, { after, upTo: to }, changes);
      const wait = async (remaining: number) => {
        const meanwhile = feed.changes(upTo, streams.current);
        const isQuiet = meanwhile && meanwhile.rooms.size === 0 && meanwhile.user === 0;
        if (isQuiet) await feeds.wait(feed, remaining, request.signal);
      };
      return { events, reached, otherData, wait };
    });
  }

  /** Returns the rooms of a user that may have new events after a position. */
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

  /** Returns the new events of one room that the user may see. */
  async #newEventsOf(userId: string, room: UserRoom, after: number, upTo: number): Promise<RangeEvents> {
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
    const membershipEvent = await engine.events.get(room.eventNid);
    const hasNothingToAdd =
      !membershipEvent || past.events.some(({ stored }) => stored.nid === membershipEvent.nid);
    // An invite has no position on a timeline when this server is not in the room.
    const addedEvents: VisibleEvent[] = hasNothingToAdd
      ? []
      : [{ stored: { ...membershipEvent, stream }, membership }];
    return { events: [...past.events, ...addedEvents], reached: upTo };
  }

  /** Returns the events after a token; waits while there are none. @param read returns the events of a range */
  async #follow(
    viewer: Viewer,
    { from, timeout, signal }: EventStreamRequest,
    read: (after: number, upTo: number) => Promise<FollowedRange>,
  ): Promise<EventChunk> {
    const { streams, clock, clientEvents } = this.#deps;
    const after = from === undefined ? streams.current : decodePosition(from);
    if (after > streams.current) throw invalidParam('The token is ahead of the current stream position');
    const deadline = clock.monotonic() + Math.min(Math.max(0, timeout), maxWait);
    for (;;) {
      const upTo = streams.current;
      const { events, reached, otherData, wait } = await read(after, upTo);
      const shown = events.filter(({ stored }) => (stored.stream ?? 0) <= reached).slice(0, maxEvents);
      const last = shown.length < events.length ? shown.at(-1)?.stored.stream : undefined;
      const end = last ?? reached;
      const otherEvents = end > after ? ((await otherData?.(end)) ?? []) : [];
      const remaining = deadline - clock.monotonic();
      if (events.length + otherEvents.length > 0 || end < upTo || remaining <= 0 || signal.aborted) {
        return {
          start: encodePosition(after),
          end: encodePosition(end),
          chunk: [...(await clientEvents.render(shown, viewer)), ...otherEvents],
        };
      }
      await wait(remaining);
    }
  }

  /** Reads the next events that the user may see: about as many as an answer contains. */
  async #next(view: RoomView, after: number, upTo: number): Promise<RangeEvents> {
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
