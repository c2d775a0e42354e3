import { type JsonObject, parseJsonObject } from '../protocol/index.ts';
import type { DelayedEventTables } from './tables.ts';

/** The end of a delayed event: sent, cancelled, or refused with an error. */
export type DelayedEventOutcome = 'send' | 'cancel' | 'error';

/** The cause of the end: a request, or the end of the delay. */
export type EndReason = 'action' | 'delay';

/** How a delayed event ended. */
export interface Finalised {
  /** When the event ended, in milliseconds since the epoch. */
  readonly ts: number;
  readonly outcome: DelayedEventOutcome;
  readonly reason: EndReason;
  /** Set when the event was sent. */
  readonly eventId: string | undefined;
  /** The error that prevented the event from being sent. */
  readonly error: JsonObject | undefined;
}

/** A delayed event: scheduled, sent, cancelled or refused. */
export interface DelayedEvent {
  readonly delayId: string;
  readonly userId: string;
  readonly roomId: string;
  readonly type: string;
  readonly stateKey: string | undefined;
  readonly content: JsonObject;
  /** Milliseconds from `since` until the event is sent. */
  readonly delay: number;
  /** When the event was scheduled or last restarted, in milliseconds since the epoch. */
  readonly since: number;
  /** Absent while the event is scheduled. */
  readonly finalised: Finalised | undefined;
}

/** Converts a row to a delayed event. */
export function toDelayedEvent(row: DelayedEventTables['delayed_events']): DelayedEvent {
  return {
    delayId: row.delay_id,
    userId: row.user_id,
    roomId: row.room_id,
    type: row.type,
    stateKey: row.state_key ?? undefined,
    content: parseJsonObject(row.content),
    delay: row.delay,
    since: row.since_ts,
    finalised:
      row.finalised_ts === null
        ? undefined
        : {
            ts: row.finalised_ts,
            outcome: row.outcome as DelayedEventOutcome,
            reason: row.reason as EndReason,
            eventId: row.event_id ?? undefined,
            error: row.error === null ? undefined : parseJsonObject(row.error),
          },
  };
}

/**
 * Returns a delayed event for its owner. Clients use several revisions of MSC4140, so the event has the member names of
 * the first implementation and of the latest.
 */
export function delayedEventJson(event: DelayedEvent): JsonObject {
  const { finalised } = event;
  const result: JsonObject = {
    ...(finalised?.eventId === undefined ? undefined : { event_id: finalised.eventId }),
    ...(finalised?.error && { error: finalised.error }),
  };
  return {
    delay_id: event.delayId,
    room_id: event.roomId,
    type: event.type,
    ...(event.stateKey === undefined ? undefined : { state_key: event.stateKey }),
    content: event.content,
    delay: event.delay,
    running_since: event.since,
    delay_ms: event.delay,
    delayed_since_ts: event.since,
    ...(finalised && {
      ...result,
      origin_server_ts: finalised.ts,
      finalised: { ...result, finalised_ts: finalised.ts },
    }),
  };
}
