import type { Statement } from '../kernel/database/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { Viewer } from './history/client-events.ts';
import type { RoomView, VisibleEvent } from './history/room-view.ts';
import type { StoredEvent } from './stored-event.ts';
import type { EventToSend } from './timeline/event-to-send.ts';

/** Rows about events, which are written in the transaction that writes the events. */
export interface IndexBatch {
  /** @param redacts the event that this one redacts, when that takes effect */
  add(stored: StoredEvent, redacts: StoredEvent | undefined): void;
  statements(): readonly Statement[];
}

/** Which events were related to: by some of these senders, with a relation of some of these types. */
export interface RelatedBy {
  readonly senders: readonly string[] | undefined;
  readonly relTypes: readonly string[] | undefined;
}

/** How events relate to each other, for those who read and write them; supplied at composition. */
export interface EventRelations {
  /** For one transaction. */
  batch(): IndexBatch;
  /** @throws MatrixError when a local user must not relate to an event like that */
  check(roomId: string, draft: EventToSend): Promise<void>;
  /** The value of `m.relations` in the `unsigned` of each event, by nid; events without one are absent. */
  bundled(events: readonly VisibleEvent[], viewer: Viewer): Promise<ReadonlyMap<number, JsonObject>>;
  /** The nids of those events that others relate to; known at once when it is in memory. */
  parents(events: readonly VisibleEvent[]): ReadonlySet<number> | Promise<ReadonlySet<number>>;
  /**
   * Those of the events that were related to as asked; all, when nothing is asked.
   * @param view of the user who must be able to see the relation; absent: they see everything
   */
  narrow(
    events: readonly VisibleEvent[],
    relatedBy: RelatedBy,
    view: RoomView | undefined,
  ): Promise<readonly VisibleEvent[]>;
}

const nothing = { add: () => undefined, statements: () => [] };

/** For rooms without anybody who knows of relations. */
export const noRelations: EventRelations = {
  batch: () => nothing,
  check: async () => undefined,
  bundled: async () => new Map(),
  parents: () => new Set(),
  narrow: async (events) => events,
};
