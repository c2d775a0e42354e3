import { checkThreadRoot, duplicateAnnotation, type JsonObject, relationOf } from '../protocol/index.ts';
import {
  type EventToSend,
  type IgnoredUserLists,
  type RoomReader,
  visibleContent,
} from '../room-engine/index.ts';
import type {
  ClientEvents,
  EventRelations,
  RelatedBy,
  RoomView,
  Viewer,
  VisibleEvent,
} from '../rooms/index.ts';
import { Bundler } from './bundler.ts';
import { aggregatedTypes, type Child } from './child.ts';
import { ChildrenInView } from './children-in-view.ts';
import type { RelationIndex } from './relation-index.ts';
import { isAnnotated, readAllChildren } from './store.ts';

export interface RelationsDeps {
  readonly engine: RoomReader;
  readonly clientEvents: ClientEvents;
  readonly index: RelationIndex;
  readonly ignored: IgnoredUserLists;
}

/** Checks the relations of new events, and reads the relations of stored events. */
export class Relations implements EventRelations {
  readonly #deps: RelationsDeps;
  readonly #bundler: Bundler;

  constructor(deps: RelationsDeps) {
    this.#deps = deps;
    this.#bundler = new Bundler(deps);
  }

  /**
   * Checks the relation of a local user's event.
   * Source: client-server API, "Validation of m.thread relationships" and "Avoiding duplicate annotations".
   * @throws MatrixError M_UNKNOWN (400) for a reply in a thread whose root cannot have threads, M_DUPLICATE_ANNOTATION
   * for a repeated annotation
   */
  async check(roomId: string, { type, sender, content }: EventToSend): Promise<void> {
    const relation = relationOf(content);
    if (!relation) return;
    const { engine, index } = this.#deps;
    const { eventId, relType, key } = relation;
    if (relType === 'm.thread') {
      const root = await engine.events.getById(eventId);
      if (root?.event.roomId === roomId) checkThreadRoot(visibleContent(root));
    } else if (relType === 'm.annotation' && key !== undefined) {
      if (await isAnnotated(index.reader, { parentId: eventId, sender, type, key }))
        throw duplicateAnnotation();
    }
  }

  bundled(events: readonly VisibleEvent[], viewer: Viewer): Promise<ReadonlyMap<number, JsonObject>> {
    return this.#bundler.bundled(events, viewer);
  }

  parents(events: readonly VisibleEvent[]): ReadonlySet<number> | Promise<ReadonlySet<number>> {
    return this.#bundler.parents(events);
  }

  async filterByRelations(
    events: readonly VisibleEvent[],
    { senders, relTypes }: RelatedBy,
    view: RoomView | undefined,
  ): Promise<readonly VisibleEvent[]> {
    if (!senders && !relTypes) return events;
    const { engine } = this.#deps;
    const children = await this.#children(
      events.map(({ stored }) => stored.event.eventId),
      relTypes,
    );
    const inView = view && (await ChildrenInView.forView(engine, view));
    const selected: VisibleEvent[] = [];
    for (const parent of events) {
      const { event, roomNid } = parent.stored;
      const related = (children.get(event.eventId) ?? []).filter(
        (child) =>
          child.roomNid === roomNid &&
          (senders?.includes(child.sender) ?? true) &&
          (relTypes?.includes(child.relType) ?? true),
      );
      const visible = related.length === 0 || !inView ? related : await inView.visible(related);
      if (visible.length > 0) selected.push(parent);
    }
    return selected;
  }

  /** Returns the children of events by parent, at least the children with the given relation types (by default all). */
  async #children(
    eventIds: readonly string[],
    relTypes: readonly string[] | undefined,
  ): Promise<ReadonlyMap<string, readonly Child[]>> {
    const { index } = this.#deps;
    if (relTypes?.every((relType) => aggregatedTypes.includes(relType))) return index.children(eventIds);
    return Map.groupBy(await readAllChildren(index.reader, eventIds), ({ parentId }) => parentId);
  }
}
