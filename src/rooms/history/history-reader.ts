import type { RoomEventFilter } from '../../filters/index.ts';
import { type ClientEvent, MatrixError, notFound } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { Viewer } from '../event-relations.ts';
import type { ClientEvents } from './client-events.ts';
import type { RemoteHistory } from './history-gaps.ts';
import { decodePlace, encodePlace, placeBefore, type SplitPlace } from './history-token.ts';
import { PageState } from './page-state.ts';
import { type HistorySource, placeAfter, readPage } from './pages.ts';
import { RoomView, type VisibleEvent } from './room-view.ts';

/** The response of `GET /messages`. */
export interface MessagesPage {
  readonly start: string;
  readonly end?: string;
  readonly chunk: readonly ClientEvent[];
  readonly state?: readonly ClientEvent[];
}

/** The query of `GET /messages`. */
export interface MessagesRequest {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly direction: 'forward' | 'backward';
  readonly limit: number;
  readonly filter: RoomEventFilter;
}

/** Reads the history of rooms for users. Source: client-server API, "Getting events for a room". */
export class HistoryReader {
  readonly #engine: RoomReader;
  readonly #source: HistorySource;
  readonly #clientEvents: ClientEvents;
  readonly #pageState: PageState;
  readonly #remoteHistory: RemoteHistory | undefined;

  /** @param remoteHistory backfills gaps in the history; absent: gaps stay */
  constructor(engine: RoomReader, clientEvents: ClientEvents, remoteHistory?: RemoteHistory) {
    this.#engine = engine;
    this.#source = { engine, relations: clientEvents.relations };
    this.#remoteHistory = remoteHistory;
    this.#clientEvents = clientEvents;
    this.#pageState = new PageState(engine, clientEvents);
  }

  /**
   * Returns one event.
   * @throws MatrixError M_NOT_FOUND also when the user may not see it or ignores its sender
   */
  async event(viewer: Viewer, roomId: string, eventId: string): Promise<ClientEvent> {
    const view = await RoomView.forEvent(this.#engine, roomId, viewer).catch(asNotFound);
    const visible = await this.#visibleEvent(view, eventId);
    const [event] = await this.#clientEvents.render([visible], viewer);
    if (!event) throw new Error('an event was not rendered');
    return event;
  }

  /** Returns one page of `GET /messages`. @throws MatrixError M_FORBIDDEN, M_INVALID_PARAM */
  async messages(viewer: Viewer, roomId: string, request: MessagesRequest): Promise<MessagesPage> {
    const view = await this.#view(viewer, roomId);
    const start = startOf(request);
    const to = request.to === undefined ? undefined : decodePlace(request.to);
    const page = await readPage(this.#source, view, start, {
      ...request,
      to,
      remoteHistory: this.#remoteHistory,
    });
    const chunk = await this.#clientEvents.render(page.events, viewer);
    const state = await this.#pageState.ofSenders(view, viewer, page.events, request.filter);
    // A page with events has a token even at the end of the history: clients that follow a room continue from there. An
    // empty page at the end has no token, so that clients that read until a page has no token stop.
    const last = page.events.at(-1);
    const next = page.next ?? (last && { ...placeAfter(last.stored, request.direction), split: start.split });
    // `start` repeats the token of the request: clients compare `start` and `end` to see whether they have advanced.
    const requestToken = request.from ?? encodePlace(start);
    return {
      start: requestToken,
      ...(next === undefined ? undefined : { end: next === start ? requestToken : encodePlace(next) }),
      chunk,
      ...(state === undefined ? undefined : { state }),
    };
  }

  /**
   * Returns an event with the events around it, and the state after the last of these events.
   * @throws MatrixError M_FORBIDDEN, M_NOT_FOUND
   */
  async context(
    viewer: Viewer,
    roomId: string,
    eventId: string,
    { limit, filter }: { limit: number; filter: RoomEventFilter },
  ) {
    const view = await this.#view(viewer, roomId);
    const visible = await this.#visibleEvent(view, eventId);
    const { event, stream = 0 } = visible.stored;
    const halfLimit = Math.floor(limit / 2);
    const placeOfEvent = { depth: event.depth, stream };
    const [before, after] = await Promise.all([
      readPage(this.#source, view, placeBefore(event, stream), {
        direction: 'backward',
        limit: halfLimit,
        filter,
        remoteHistory: this.#remoteHistory,
      }),
      readPage(this.#source, view, placeOfEvent, { direction: 'forward', limit: limit - halfLimit, filter }),
    ]);
    const allEvents = [...before.events, visible, ...after.events];
    const [first, last] = [before.events.at(-1) ?? visible, after.events.at(-1) ?? visible];
    const senders = new Set(allEvents.map(({ stored }) => stored.event.sender));
    const rendered = await this.#clientEvents.render(allEvents, viewer);
    return {
      start: encodePlace(before.next ?? placeAfter(first.stored, 'backward')),
      end: encodePlace(after.next ?? placeAfter(last.stored, 'forward')),
      event: rendered[before.events.length],
      events_before: rendered.slice(0, before.events.length),
      events_after: rendered.slice(before.events.length + 1),
      state: await this.#pageState.after(view, viewer, last.stored, { filter, senders }),
    };
  }

  /** Returns the ids of the rooms that the user has joined. */
  joinedRooms(userId: string): Promise<string[]> {
    return this.#engine.userRooms.withMembership(userId, 'join');
  }

  async #view(viewer: Viewer, roomId: string): Promise<RoomView> {
    return RoomView.forViewer(this.#engine, roomId, viewer);
  }

  async #visibleEvent(view: RoomView, eventId: string): Promise<VisibleEvent> {
    const { events } = this.#engine;
    const stored = await events.getById(eventId);
    // An event that is not on disk yet is not part of the history, and its write may fail.
    const isInTimeline =
      stored?.roomNid === view.head.roomNid && stored.stream !== undefined && events.isSaved(stored);
    const [visible] = isInTimeline ? await view.displayable([stored]) : [];
    if (!visible) throw notFound('Event not found');
    return visible;
  }
}

/**
 * Returns the place where a page begins. When the token is a position on the stream, the page may contain every event
 * before (or after) that position, of any depth.
 */
function startOf({ from, direction }: MessagesRequest): SplitPlace {
  const place = from === undefined ? undefined : decodePlace(from);
  if (place && !('position' in place)) return place;
  const end =
    direction === 'forward'
      ? { depth: 0, stream: Number.MIN_SAFE_INTEGER }
      : { depth: Number.MAX_SAFE_INTEGER, stream: Number.MAX_SAFE_INTEGER };
  return place ? { ...end, split: place.position } : end;
}

/** Hides from users who may not read the room whether it contains an event. */
function asNotFound(error: unknown): never {
  if (error instanceof MatrixError && error.errcode === 'M_FORBIDDEN') throw notFound('Event not found');
  throw error;
}
