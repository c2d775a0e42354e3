import type { RoomEvent } from '../event.ts';
import type { JsonObject } from '../json.ts';
import type { ThreadSummary } from './threads.ts';

/** The aggregated relations of an event's child events, with events in the format for clients. */
export interface ChildAggregations {
  /** See `latestReplacement`. */
  readonly replacement?: JsonObject | undefined;
  /** See `summariseThread`. */
  readonly thread?: ThreadSummary<JsonObject> | undefined;
  /** The ids of the child events with the relation type `m.reference`. */
  readonly references?: readonly string[] | undefined;
}

/**
 * Returns `m.relations` for the `unsigned` of an event; `undefined` if there are no aggregations. Annotations
 * are not aggregated, and state events have no aggregations.
 * Source: client-server API, "Aggregations of child events".
 */
export function bundleRelations(
  event: Pick<RoomEvent, 'stateKey'>,
  { replacement, thread, references = [] }: ChildAggregations,
): JsonObject | undefined {
  if (event.stateKey !== undefined) return undefined;
  if (replacement === undefined && thread === undefined && references.length === 0) return undefined;
  return {
    ...(replacement && { 'm.replace': replacement }),
    ...(thread && { 'm.thread': threadAggregation(thread) }),
    ...(references.length > 0 && { 'm.reference': { chunk: references.map((event_id) => ({ event_id })) } }),
  };
}

const threadAggregation = (thread: ThreadSummary<JsonObject>): JsonObject => ({
  latest_event: thread.latestEvent,
  count: thread.count,
  current_user_participated: thread.currentUserParticipated,
});
