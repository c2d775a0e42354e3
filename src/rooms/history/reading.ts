import type { RoomEventFilter } from '../../filters/index.ts';
import { type ClientEvent, notFound, stateKeyOf } from '../../protocol/index.ts';
import type { RoomEngine } from '../engine.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { HistoryPlace } from '../timeline/event-store.ts';
import type { ClientEvents, Viewer } from './client-events.ts';
import { decodePlace, encodePlace, placeBefore } from './history-token.ts';
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

interface FilteredPage {
  readonly events: readonly VisibleEvent[];
  /** Where to go on; `undefined` at the end of the history. */
  readonly next: HistoryPlace | undefined;
}

/** Events that one request may look at to fill its page; then it gets a shorter one and a token to go on. */
const mostScanned = 1_000;

/** Reads the history of rooms for users. Source: client-server API, "Getting events for a room". */
export class Reading {
  readonly #engine: RoomEngine;
  readonly #clientEvents: ClientEvents;

  constructor(engine: RoomEngine, clientEvents: ClientEvents) {
    this.#engine = engine;
    this.#clientEvents = clientEvents;
  }

  /** One event. @throws MatrixError M_NOT_FOUND also when the user may not see it */
  async event(viewer: Viewer, roomId: string, eventId: string): Promise<ClientEvent> {
    const view = await this.#view(viewer, roomId);
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
    const page = await this.#page(view, start, { ...request, to });
    const chunk = await this.#clientEvents.render(page.events, viewer);
    const state = await this.#memberState(view, viewer, page.events, request.filter);
    return {
      start: encodePlace(start),
      ...(page.next === undefined ? undefined : { end: encodePlace(page.next) }),
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
    const half = Math.floor(limit / 2);
    const before = await this.#page(view, placeBefore(event, stream), {
      direction: 'backward',
      limit: half,
      filter,
    });
    const after = await this.#page(
      view,
      { depth: event.depth, stream },
      {
        direction: 'forward',
        limit: limit - half,
        filter,
      },
    );
    const last = after.events.at(-1) ?? visible;
    const [rendered] = await this.#clientEvents.render([visible], viewer);
    return {
      start: encodePlace(before.next ?? placeBefore(event, stream)),
      end: encodePlace(after.next ?? { depth: last.stored.event.depth, stream: last.stored.stream ?? 0 }),
      event: rendered,
      events_before: await this.#clientEvents.render(before.events, viewer),
      events_after: await this.#clientEvents.render(after.events, viewer),
      state: await this.#stateAt(view, viewer, last.stored, filter),
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
    const stored = await this.#engine.events.getById(eventId);
    const isHere = stored?.roomNid === view.head.roomNid && stored.stream !== undefined;
    const [visible] = isHere ? await view.filter([stored]) : [];
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

  /** Reads on from `start` until the page is full, the history or `to` is reached, or enough was looked at. */
  async #page(
    view: RoomView,
    start: HistoryPlace,
    {
      direction,
      limit,
      filter,
      to,
    }: Omit<MessagesRequest, 'to' | 'from'> & { to?: HistoryPlace | undefined },
  ): Promise<FilteredPage> {
    const events: VisibleEvent[] = [];
    let place = start;
    for (let scanned = 0; scanned < mostScanned && events.length < limit; ) {
      const size = Math.min(Math.max(limit - events.length, 20), mostScanned - scanned);
      const read = await this.#engine.events.history(view.head.roomNid, place, { limit: size, direction });
      scanned += read.length;
      const visible = new Map((await view.filter(read)).map((one) => [one.stored.nid, one]));
      for (const stored of read) {
        if (to && isBeyond(stored, to, direction)) return { events, next: to };
        if (events.length === limit) return { events, next: place };
        place = placePast(stored, direction);
        const one = visible.get(stored.nid);
        if (one && filter.passes(stored.event)) events.push(one);
      }
      if (read.length < size) return { events, next: undefined };
    }
    return { events, next: place };
  }

  /** With lazy loading, the membership events of the senders. */
  async #memberState(
    view: RoomView,
    viewer: Viewer,
    events: readonly VisibleEvent[],
    filter: RoomEventFilter,
  ): Promise<ClientEvent[] | undefined> {
    if (!filter.lazyLoadMembers) return undefined;
    const senders = new Set(events.map(({ stored }) => stored.event.sender));
    const last = events.at(0)?.stored;
    return last ? this.#entriesAt(view, viewer, last, [...senders].map(memberKey)) : [];
  }

  async #stateAt(
    view: RoomView,
    viewer: Viewer,
    at: StoredEvent,
    filter: RoomEventFilter,
  ): Promise<ClientEvent[]> {
    if (at.stateGroup === undefined) return [];
    const state = await this.#engine.groups.load(at.stateGroup);
    const events = await this.#engine.events.getMany(state.values());
    const accepted = [...events.values()].filter(
      ({ event }) =>
        filter.passes(event) &&
        !(filter.lazyLoadMembers && event.type === 'm.room.member' && event.stateKey !== at.event.sender),
    );
    return this.#renderState(view, viewer, accepted);
  }

  async #entriesAt(
    view: RoomView,
    viewer: Viewer,
    at: StoredEvent,
    keys: readonly string[],
  ): Promise<ClientEvent[]> {
    if (at.stateGroup === undefined) return [];
    const found = await Promise.all(keys.map((key) => this.#engine.stateKeys.find(key)));
    const keyNids = found.filter((nid) => nid !== undefined);
    const state = (await this.#engine.groups.entries([at.stateGroup], keyNids)).get(at.stateGroup);
    const events = await this.#engine.events.getMany(state?.values() ?? []);
    return this.#renderState(view, viewer, [...events.values()]);
  }

  #renderState(view: RoomView, viewer: Viewer, events: readonly StoredEvent[]): Promise<ClientEvent[]> {
    const membership = view.head.membership(viewer.userId) ?? 'leave';
    return this.#clientEvents.render(
      events.map((stored) => ({ stored, membership })),
      viewer,
    );
  }
}

const memberKey = (userId: string) => stateKeyOf('m.room.member', userId);

/** The place to go on from after an event. */
function placePast({ event, stream = 0 }: StoredEvent, direction: 'forward' | 'backward'): HistoryPlace {
  return direction === 'forward' ? { depth: event.depth, stream } : placeBefore(event, stream);
}

function isBeyond(
  { event, stream = 0 }: StoredEvent,
  to: HistoryPlace,
  direction: 'forward' | 'backward',
): boolean {
  const isAfter = event.depth > to.depth || (event.depth === to.depth && stream > to.stream);
  return direction === 'forward' ? isAfter : !isAfter;
}
