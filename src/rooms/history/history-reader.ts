import type { RoomEventFilter } from '../../filters/index.ts';
import { type ClientEvent, MatrixError, notFound } from '../../protocol/index.ts';
import type { HistoryPlace, RoomReader } from '../../room-engine/index.ts';
import type { Viewer } from '../event-relations.ts';
import type { ClientEvents } from './client-events.ts';
import type { RemoteHistory } from './history-gaps.ts';
import { decodePlace, encodePlace, placeBefore } from './history-token.ts';
import { PageState } from './page-state.ts';
import { type HistorySource, placePast, readPage } from './pages.ts';
import { RoomView, type VisibleEvent } from './room-view.ts';

/** The answer to `GET /messages`. */
export interface MessagesPage {
  readonly start: string;
  readonly end?: string;
  readonly chunk: readonly ClientEvent[];
  readonly state?: readonly ClientEvent[];
}

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
  readonly #older: RemoteHistory | undefined;

  /** @param older fills gaps in the history; absent: they stay */
  constructor(engine: RoomReader, clientEvents: ClientEvents, older?: RemoteHistory) {
    this.#engine = engine;
    this.#source = { engine, relations: clientEvents.relations };
    this.#older = older;
    this.#clientEvents = clientEvents;
    this.#pageState = new PageState(engine, clientEvents);
  }

  /** One event. @throws MatrixError M_NOT_FOUND also when the user may not see it, or ignores who sent it */
  async event(viewer: Viewer, roomId: string, eventId: string): Promise<ClientEvent> {
    const view = await this.#view(viewer, roomId).catch(asNotFound);
    const visible = await this.#visibleEvent(view, eventId);
    const [event] = await this.#clientEvents.render([visible], viewer);
    if (!event) throw new Error('an event was not rendered');
    return event;
  }

  /** A page of history. */
  async messages(viewer: Viewer, roomId: string, request: MessagesRequest): Promise<MessagesPage> {
    const view = await this.#view(viewer, roomId);
    const { roomNid } = view.head;
    const start = await this.#start(roomNid, request);
    const to = request.to === undefined ? undefined : await this.#place(roomNid, request.to);
    const page = await readPage(this.#source, view, start, { ...request, to, older: this.#older });
    const chunk = await this.#clientEvents.render(page.events, viewer);
    const state = await this.#pageState.ofSenders(view, viewer, page.events, request.filter);
    const next =
      page.next ?? (request.direction === 'forward' ? await nextForward(view, page.events) : undefined);
    // The start is the token that was given: clients compare the two to see that they have not come on.
    const given = request.from ?? encodePlace(start);
    return {
      start: given,
      ...(next === undefined ? undefined : { end: next === start ? given : encodePlace(next) }),
      chunk,
      ...(state === undefined ? undefined : { state }),
    };
  }

  /** An event with what was said before and after it, and the state at the end of that. */
  async context(
    viewer: Viewer,
    roomId: string,
    eventId: string,
    { limit, filter }: { limit: number; filter: RoomEventFilter },
  ) {
    const view = await this.#view(viewer, roomId);
    const visible = await this.#visibleEvent(view, eventId);
    const { event, stream = 0 } = visible.stored;
    const [half, here] = [Math.floor(limit / 2), { depth: event.depth, stream }];
    const [before, after] = await Promise.all([
      readPage(this.#source, view, placeBefore(event, stream), {
        direction: 'backward',
        limit: half,
        filter,
        older: this.#older,
      }),
      readPage(this.#source, view, here, { direction: 'forward', limit: limit - half, filter }),
    ]);
    const all = [...before.events, visible, ...after.events];
    const [first, last] = [before.events.at(-1) ?? visible, after.events.at(-1) ?? visible];
    const senders = new Set(all.map(({ stored }) => stored.event.sender));
    const rendered = await this.#clientEvents.render(all, viewer);
    return {
      start: encodePlace(before.next ?? placePast(first.stored, 'backward')),
      end: encodePlace(after.next ?? placePast(last.stored, 'forward')),
      event: rendered[before.events.length],
      events_before: rendered.slice(0, before.events.length),
      events_after: rendered.slice(before.events.length + 1),
      state: await this.#pageState.after(view, viewer, last.stored, { filter, senders }),
    };
  }

  /** The ids of the rooms that the user is in. */
  joinedRooms(userId: string): Promise<string[]> {
    return this.#engine.userRooms.withMembership(userId, 'join');
  }

  async #view(viewer: Viewer, roomId: string): Promise<RoomView> {
    return RoomView.forReading(this.#engine, await this.#engine.heads.get(roomId), viewer.userId);
  }

  async #visibleEvent(view: RoomView, eventId: string): Promise<VisibleEvent> {
    const { events } = this.#engine;
    const stored = await events.getById(eventId);
    // What is not on disk yet is not in the history either, and may never be.
    const isHere =
      stored?.roomNid === view.head.roomNid && stored.stream !== undefined && events.isSaved(stored);
    const [visible] = isHere ? await view.displayable([stored]) : [];
    if (!visible) throw notFound('There is no such event');
    return visible;
  }

  async #start(roomNid: number, { from, direction }: MessagesRequest): Promise<HistoryPlace> {
    if (from !== undefined) return this.#place(roomNid, from);
    return direction === 'forward'
      ? { depth: 0, stream: Number.MIN_SAFE_INTEGER }
      : { depth: Number.MAX_SAFE_INTEGER, stream: Number.MAX_SAFE_INTEGER };
  }

  async #place(roomNid: number, token: string): Promise<HistoryPlace> {
    const place = decodePlace(token);
    return 'position' in place ? this.#engine.events.placeAt(roomNid, place.position) : place;
  }
}

/**
 * Where to go on from the newest events, for those who will see what is said next: a client that follows the room page
 * by page needs the token. A page without events has none: whoever reads on as long as there are tokens comes to an end.
 */
async function nextForward(
  view: RoomView,
  events: readonly VisibleEvent[],
): Promise<HistoryPlace | undefined> {
  const last = events.at(-1);
  if (!last || !(view.isJoined || (await view.isWorldReadable()))) return undefined;
  return placePast(last.stored, 'forward');
}

/** Who may not read the room is not told either which events are in it. */
function asNotFound(error: unknown): never {
  if (error instanceof MatrixError && error.errcode === 'M_FORBIDDEN')
    throw notFound('There is no such event');
  throw error;
}
