import type { ClientEvent } from '../protocol/index.ts';
import { MatrixError, notFound } from '../protocol/index.ts';
import {
  type HistoryPlace,
  type IgnoredUserLists,
  isStorableText,
  type RoomReader,
  type StoredEvent,
} from '../room-engine/index.ts';
import {
  type ClientEvents,
  decodePlace,
  encodePlace,
  RoomView,
  type SplitPlace,
  type Viewer,
  type VisibleEvent,
} from '../rooms/index.ts';
import type { Child } from './child.ts';
import type { RelationIndex } from './relation-index.ts';
import { readChildNids, readChildrenPage } from './store.ts';

export interface RelatedEventsDeps {
  readonly engine: RoomReader;
  readonly clientEvents: ClientEvents;
  readonly index: RelationIndex;
  readonly ignored: IgnoredUserLists;
}

export interface RelatedEventsRequest {
  readonly eventId: string;
  readonly relType: string | undefined;
  readonly type: string | undefined;
  readonly direction: 'forward' | 'backward';
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly limit: number;
  readonly recurse: boolean;
}

/** Response of `GET /relations`. */
export interface RelatedEventsPage {
  readonly chunk: readonly ClientEvent[];
  readonly next_batch?: string;
  readonly prev_batch?: string;
  readonly recursion_depth?: number;
}

/** Maximum depth of recursion. */
const maxDepth = 3;

/** Maximum number of events that are read for each level of the recursion. */
const maxPerLevel = 1_000;

/** Maximum number of events that one request reads to fill its page. */
const maxScanned = 1_000;

/** Lists the events that relate to an event. Source: client-server API, "Relationships API". */
export class RelatedEvents {
  readonly #deps: RelatedEventsDeps;

  constructor(deps: RelatedEventsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns a page of the events that relate to an event.
   * @throws MatrixError M_NOT_FOUND when the user may not see the parent, M_INVALID_PARAM for invalid tokens
   */
  async page(viewer: Viewer, roomId: string, request: RelatedEventsRequest): Promise<RelatedEventsPage> {
    const { engine, clientEvents } = this.#deps;
    const { view, parent } = await viewOfParent(engine, viewer.userId, roomId, request.eventId);
    // No event has a type with U+0000, and some databases reject a query for it.
    if (![request.relType ?? '', request.type ?? ''].every(isStorableText))
      return { chunk: [], ...depthOf(request) };
    const parentIds = await this.#parents(view.head.roomNid, request);
    const { events, next } = await this.#collect(view, parent, parentIds, request);
    return {
      chunk: await clientEvents.render(events, viewer),
      ...(next && { next_batch: encodePlace(next) }),
      ...(request.from === undefined ? undefined : { prev_batch: request.from }),
      ...depthOf(request),
    };
  }

  /**
   * Returns the ids of the events whose children are requested: the event itself, and with `recurse` also its
   * descendants of all relation types and event types: the types of the request filter only the returned events.
   */
  async #parents(roomNid: number, request: RelatedEventsRequest): Promise<string[]> {
    const { engine, index } = this.#deps;
    const { eventId, recurse } = request;
    const parents = new Set([eventId]);
    let level = [eventId];
    for (let depth = 1; recurse && depth < maxDepth && level.length > 0; depth++) {
      const query = { roomNid, parentIds: level, limit: maxPerLevel };
      const ids = await engine.events.idsOf(await readChildNids(index.reader, query));
      level = [...ids.values()].filter((id) => !parents.has(id));
      for (const id of level) parents.add(id);
    }
    return [...parents];
  }

  /**
   * Reads children until the page is full. Leaves out the edits of `parent` if it is redacted, because they contain
   * the redacted content.
   * @param parent the event of the request
   * @returns the visible events, and the place where the next page begins
   */
  async #collect(
    view: RoomView,
    parent: StoredEvent,
    parentIds: readonly string[],
    { relType, type, direction, limit, ...request }: RelatedEventsRequest,
  ): Promise<{ events: VisibleEvent[]; next: SplitPlace | undefined }> {
    const { index, ignored } = this.#deps;
    const { roomNid } = view.head;
    const ignoredUsers = await ignored.of(view.userId);
    const [begin, split] = boundsOfToken(request.from);
    const [to, streamEnd] = boundsOfToken(request.to);
    const bounds =
      direction === 'backward' ? { after: streamEnd, upTo: split } : { after: split, upTo: streamEnd };
    let from: SplitPlace | undefined = begin;
    const events: VisibleEvent[] = [];
    for (let scanned = 0; scanned < maxScanned; ) {
      const size = Math.max(limit - events.length, 20);
      const range = { roomNid, parentIds, relType, type, direction, from, ...bounds, limit: size };
      const children = await readChildrenPage(index.reader, range);
      scanned += children.length;
      const visible = await this.#visible(view, children, ignoredUsers);
      for (const child of children) {
        if (to && isBeyond(child, to, direction)) return { events, next: undefined };
        if (events.length === limit) return { events, next: from };
        from = { ...placeAfter(child, direction), split };
        const event = visible.get(child.nid);
        if (event && !isEditOfRedacted(child, parent)) events.push(event);
      }
      if (children.length < size) return { events, next: undefined };
    }
    return { events, next: from };
  }

  /** Returns the events of the children that the user may see, by nid. */
  async #visible(
    view: RoomView,
    children: readonly Child[],
    ignoredUsers: ReadonlySet<string>,
  ): Promise<Map<number, VisibleEvent>> {
    const { engine } = this.#deps;
    const eventsByNid = await engine.events.getMany(children.map(({ nid }) => nid));
    const notIgnored = [...eventsByNid.values()].filter(
      ({ event }) => event.stateKey !== undefined || !ignoredUsers.has(event.sender),
    );
    return new Map((await view.visible(notIgnored)).map((event) => [event.stored.nid, event]));
  }
}

/** Returns the place of a token, and the position on the stream that bounds the events. */
function boundsOfToken(
  token: string | undefined,
): readonly [place: SplitPlace | undefined, position: number | undefined] {
  if (token === undefined) return [undefined, undefined];
  const place = decodePlace(token);
  return 'position' in place ? [undefined, place.position] : [place, place.split];
}

const depthOf = ({ recurse }: RelatedEventsRequest) => (recurse ? { recursion_depth: maxDepth } : undefined);

const isEditOfRedacted = ({ relType, parentId }: Child, parent: StoredEvent) =>
  relType === 'm.replace' && parentId === parent.event.eventId && parent.redactedBy !== undefined;

/**
 * Returns an event and the user's view of its room.
 * @throws MatrixError M_NOT_FOUND when the user may not see the event
 */
async function viewOfParent(
  engine: RoomReader,
  userId: string,
  roomId: string,
  eventId: string,
): Promise<{ view: RoomView; parent: StoredEvent }> {
  const head = await engine.heads.get(roomId);
  const view = await RoomView.forReading(engine, head, userId).catch(asNotFound);
  const stored = await engine.events.getById(eventId);
  const isInTimeline = stored?.roomNid === view.head.roomNid && stored.stream !== undefined;
  if (!isInTimeline || (await view.visible([stored])).length === 0) throw notFound('Event not found');
  return { view, parent: stored };
}

/** Answers users who may not read the room as if it did not contain the event. */
function asNotFound(error: unknown): never {
  if (error instanceof MatrixError && error.errcode === 'M_FORBIDDEN') throw notFound('Event not found');
  throw error;
}

const placeAfter = ({ depth, stream }: Child, direction: 'forward' | 'backward'): HistoryPlace => ({
  depth,
  stream: direction === 'forward' ? stream : stream - 1,
});

function isBeyond({ depth, stream }: Child, to: HistoryPlace, direction: 'forward' | 'backward'): boolean {
  const isAfter = depth > to.depth || (depth === to.depth && stream > to.stream);
  return direction === 'forward' ? isAfter : !isAfter;
}
