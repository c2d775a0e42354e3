/** The tables of delayed events. */
export interface DelayedEventTables {
  delayed_events: {
    delay_id: string;
    user_id: string;
    /** Stands for the request that made it, so that a repeated one makes no second. */
    request: string | null;
    room_id: string;
    type: string;
    /** Null for events that are not part of the state. */
    state_key: string | null;
    /** JSON. */
    content: string;
    /** Milliseconds. */
    delay: number;
    /** When it was scheduled, or restarted last, in milliseconds since the epoch. */
    since_ts: number;
    /** When it was sent or cancelled; null while it waits. */
    finalised_ts: number | null;
    /** `send`, `cancel` or `error`. */
    outcome: string | null;
    /** `action` or `delay`: what made it so. */
    reason: string | null;
    event_id: string | null;
    /** JSON of the error that kept it from being sent. */
    error: string | null;
  };
}
