import { type ClientEvent, isJsonObject, type JsonObject, redactEvent } from '../protocol/index.ts';
import type { IgnoredUserLists, RoomReader } from '../room-engine/index.ts';
import {
  type ClientEvents,
  decodePlace,
  encodePlace,
  RoomView,
  type Viewer,
  type VisibleEvent,
} from '../rooms/index.ts';
import type { RelationIndex } from './relation-index.ts';
import { readThreads, type ThreadRow } from './store.ts';

export interface ThreadListDeps {
  readonly engine: RoomReader;
  readonly clientEvents: ClientEvents;
  readonly index: RelationIndex;
  readonly ignored: IgnoredUserLists;
}

export interface ThreadListRequest {
  readonly include: 'all' | 'participated';
  readonly from: string | undefined;
  readonly limit: number;
}

/** Response of `GET /threads`. */
export interface ThreadListPage {
  readonly chunk: readonly ClientEvent[];
  readonly next_batch?: string;
}

/** Maximum number of threads that one request reads to fill its page. */
const maxScanned = 500;

/** Lists the threads of a room. Source: client-server API, "Querying threads in a room". */
export class ThreadList {
  readonly #deps: ThreadListDeps;

  constructor(deps: ThreadListDeps) {
    this.#deps = deps;
  }

  /**
   * Returns a page of the threads of a room.
   * @throws MatrixError M_FORBIDDEN, M_INVALID_PARAM for an invalid token
   */
  async page(viewer: Viewer, roomId: string, request: ThreadListRequest): Promise<ThreadListPage> {
    const { engine, index } = this.#deps;
    const { limit, include } = request;
    const view = await RoomView.forReading(engine, await engine.heads.get(roomId), viewer.userId);
    const chunk: ClientEvent[] = [];
    let before = request.from === undefined ? undefined : positionOfToken(request.from);
    for (let scanned = 0; scanned < maxScanned; ) {
      const rows = await readThreads(index.reader, view.head.roomNid, before, limit);
      scanned += rows.length;
      const roots = await this.#roots(view, viewer, rows);
      for (const { rootId, latest } of rows) {
        if (chunk.length === limit)
          return { chunk, next_batch: encodePlace({ depth: 0, stream: before ?? 0 }) };
        before = latest;
        const root = roots.get(rootId);
        const thread = root && threadSummaryOf(root);
        if (thread && (include === 'all' || thread['current_user_participated'] === true)) chunk.push(root);
      }
      if (rows.length < limit) return { chunk };
    }
    return { chunk, next_batch: encodePlace({ depth: 0, stream: before ?? 0 }) };
  }

  /** Returns the visible roots, prepared for the client, by event id. */
  async #roots(
    view: RoomView,
    viewer: Viewer,
    rows: readonly ThreadRow[],
  ): Promise<Map<string, ClientEvent>> {
    const { engine, clientEvents, ignored } = this.#deps;
    const ignoredUsers = await ignored.of(viewer.userId);
    const storedById = await engine.events.getManyById(rows.map(({ rootId }) => rootId));
    const inThisRoom = [...storedById.values()].filter(
      ({ roomNid, stream }) => roomNid === view.head.roomNid && stream !== undefined,
    );
    const visible = (await view.visible(inThisRoom)).map((event) =>
      ignoredUsers.has(event.stored.event.sender) ? withoutContent(event) : event,
    );
    const rendered = await clientEvents.render(visible, viewer);
    return new Map(
      visible.map(({ stored }, index) => [stored.event.eventId, rendered[index] as ClientEvent]),
    );
  }
}

/** Removes the content of a root for users who ignore its sender. */
function withoutContent({ stored, membership }: VisibleEvent): VisibleEvent {
  return { stored: { ...stored, event: redactEvent(stored.event).event }, membership };
}

function threadSummaryOf({ unsigned }: ClientEvent): JsonObject | undefined {
  const relations = isJsonObject(unsigned) ? unsigned['m.relations'] : undefined;
  const thread = isJsonObject(relations) ? relations['m.thread'] : undefined;
  return isJsonObject(thread) ? thread : undefined;
}

/**
 * Returns the stream position of a token: the page that begins at the token lists threads whose latest replies are
 * before this position.
 */
function positionOfToken(token: string): number {
  const place = decodePlace(token);
  return 'position' in place ? place.position + 1 : place.stream;
}
