import type { JsonObject } from '../protocol/index.ts';
import type { EventToSend } from '../room-engine/index.ts';
import type { RoomView, VisibleEvent } from './history/room-view.ts';

/** The user and the device that receive rendered events. */
export interface Viewer {
  readonly userId: string;
  readonly deviceId: string | undefined;
  /** Whether the viewer is an administrator who reads all events, also in rooms that they are not in. */
  readonly seesAllEvents?: boolean;
}

/**
 * Selects events by the events that relate to them: at least one related event must have one of these senders, and one
 * of these relation types; `undefined` allows any.
 */
export interface RelatedBy {
  readonly senders: readonly string[] | undefined;
  readonly relTypes: readonly string[] | undefined;
}

/** Relations between events, as sending and reading need them; supplied at composition. */
export interface EventRelations {
  /**
   * Checks the relation of an event that a local user sends.
   * @throws MatrixError when the event must not have this relation
   */
  check(roomId: string, draft: EventToSend): Promise<void>;
  /** Returns `unsigned.m.relations` of each event, by nid; events without relations are absent. */
  bundled(events: readonly VisibleEvent[], viewer: Viewer): Promise<ReadonlyMap<number, JsonObject>>;
  /** Returns the nids of the events that have child events; synchronously when all relations are in memory. */
  parents(events: readonly VisibleEvent[]): ReadonlySet<number> | Promise<ReadonlySet<number>>;
  /**
   * Returns the events that `relatedBy` selects, in their order; all events when it has no conditions.
   * @param view the view of the user: only related events that the user can see count; absent: every related event
   * counts
   */
  filterByRelations(
    events: readonly VisibleEvent[],
    relatedBy: RelatedBy,
    view: RoomView | undefined,
  ): Promise<readonly VisibleEvent[]>;
}

/** Stores no relations: every event is allowed, no event has relations, and `filterByRelations` returns all events. */
export const noRelations: EventRelations = {
  check: async () => undefined,
  bundled: async () => new Map(),
  parents: () => new Set(),
  filterByRelations: async (events) => events,
};
