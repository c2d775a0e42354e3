import type { Database } from '../kernel/database/index.ts';
import { checkThreadRoot, duplicateAnnotation, type JsonObject, relationOf } from '../protocol/index.ts';
import {
  type EventRelations,
  type EventToSend,
  type IndexBatch,
  type RelatedBy,
  type RoomEngine,
  type Rooms,
  type RoomView,
  type Viewer,
  type VisibleEvent,
  visibleContent,
} from '../rooms/index.ts';
import { Bundler, type Ignoring } from './bundler.ts';
import type { Child } from './child.ts';
import { ChildrenInView } from './children-in-view.ts';
import { RelationIndex } from './relation-index.ts';

interface Attached {
  readonly engine: RoomEngine;
  readonly bundler: Bundler;
}

/** How events relate to each other. Made before rooms, which write its rows, and attached to them afterwards. */
export class Relations implements EventRelations {
  readonly index: RelationIndex;
  #attached: Attached | undefined;

  constructor(database: Database, serverName: string) {
    this.index = new RelationIndex(database, serverName);
  }

  /** Once the rooms are there, before anything happens in them. */
  attach({ engine, clientEvents }: Pick<Rooms, 'engine' | 'clientEvents'>, ignored: Ignoring): void {
    this.#attached = { engine, bundler: new Bundler({ engine, clientEvents, index: this.index, ignored }) };
    this.index.follow(engine);
  }

  batch(): IndexBatch {
    return this.index.batch();
  }

  /**
   * Source: client-server API, "Validation of m.thread relationships" and "Avoiding duplicate annotations".
   * @throws MatrixError M_UNKNOWN (400), M_DUPLICATE_ANNOTATION
   */
  async check(roomId: string, { type, sender, content }: EventToSend): Promise<void> {
    const relation = relationOf(content);
    if (!relation || !this.#attached) return;
    const { eventId, relType, key } = relation;
    if (relType === 'm.thread') {
      const root = await this.#attached.engine.events.getById(eventId);
      if (root?.event.roomId === roomId) checkThreadRoot(visibleContent(root));
    } else if (relType === 'm.annotation' && key !== undefined) {
      const children = (await this.index.children([eventId])).get(eventId) ?? [];
      const isSame = (child: Child) =>
        child.relType === relType && child.key === key && child.sender === sender && child.type === type;
      if (children.some(isSame)) throw duplicateAnnotation();
    }
  }

  bundled(events: readonly VisibleEvent[], viewer: Viewer): Promise<ReadonlyMap<number, JsonObject>> {
    return this.#attached?.bundler.bundled(events, viewer) ?? Promise.resolve(new Map());
  }

  parents(events: readonly VisibleEvent[]): ReadonlySet<number> | Promise<ReadonlySet<number>> {
    return this.#attached?.bundler.parents(events) ?? new Set();
  }

  async narrow(
    events: readonly VisibleEvent[],
    { senders, relTypes }: RelatedBy,
    view: RoomView | undefined,
  ): Promise<readonly VisibleEvent[]> {
    if ((!senders && !relTypes) || !this.#attached) return events;
    const children = await this.index.children(events.map(({ stored }) => stored.event.eventId));
    const inView = view && (await ChildrenInView.of(this.#attached.engine, view));
    const narrowed: VisibleEvent[] = [];
    for (const one of events) {
      const { event, roomNid } = one.stored;
      const related = (children.get(event.eventId) ?? []).filter(
        (child) =>
          child.roomNid === roomNid &&
          (senders?.includes(child.sender) ?? true) &&
          (relTypes?.includes(child.relType) ?? true),
      );
      const visible = related.length === 0 || !inView ? related : await inView.visible(related);
      if (visible.length > 0) narrowed.push(one);
    }
    return narrowed;
  }
}
