/** The tables of delayed events. */
export interface DelayedEventTables {
  delayed_events: {
    delay_id: string;
    user_id: string;
    /** Identifies the request that scheduled the event, so that a repeated request is recognized. */
    request: string | null;
    room_id: string;
    type: string;
    /** Null for events that are not state. */
    state_key: string | null;
    /** As JSON. */
    content: string;
    /** Milliseconds from `since_ts` until the event is sent. */
    delay: number;
    /** When the event was scheduled or last restarted, in milliseconds since the epoch. */
    since_ts: number;
    /** When the event was sent, cancelled or refused; null while it is scheduled. */
    finalised_ts: number | null;
    /** `send`, `cancel` or `error`. */
    outcome: string | null;
    /** `action` or `delay`: cause of the end. */
    reason: string | null;
    event_id: string | null;
    /** The error that prevented the event from being sent, as JSON. */
    error: string | null;
  };
}
