/** The tables of pushers. */
export interface PusherTables {
  /** One row for each user, `app_id` and `pushkey`. */
  pushers: {
    id: number;
    user_id: string;
    /**
     * The device that set the pusher. The pusher is deleted together with the device. Null for pushers that the server
     * has added.
     */
    device_id: string | null;
    kind: string;
    app_id: string;
    pushkey: string;
    app_display_name: string;
    device_display_name: string;
    profile_tag: string | null;
    lang: string;
    /** `data` as JSON. */
    data: string;
    /** 0 or 1. Source: MSC3881. */
    enabled: number;
    /** When a client last set the pusher, in milliseconds since the epoch. */
    set_at: number;
    /** Number of failed attempts since the last success, or since the pusher was set. */
    failures: number;
    /** Time of the first failed attempt since the last success, in milliseconds since the epoch; null without failures. */
    failing_since: number | null;
    /** Time of the next attempt, in milliseconds since the epoch; null without failures. */
    retry_at: number | null;
    /** The unread count that the gateway last received; null before the first one. */
    badge: number | null;
  };
  /** Events that a pusher has not sent a notification about yet. */
  pending_pushes: {
    pusher_id: number;
    /** Position of the event on the stream of rooms. An invite by a remote server has a position there, too. */
    stream: number;
    user_id: string;
    room_id: string;
    /** Number of the event in the database. */
    nid: number;
    /** When the event became pending, in milliseconds since the epoch. */
    added_at: number;
    /** Earliest time of the notification, in milliseconds since the epoch. */
    due_at: number;
  };
  /**
   * Bounds how often mails about a room are sent: one row for each pusher and each room that was in one of its mails.
   */
  mail_throttles: {
    pusher_id: number;
    room_id: string;
    user_id: string;
    /** When the last mail that contains the room was sent, in milliseconds since the epoch. */
    sent_at: number;
    /** Milliseconds from `sent_at` until the room may cause the next mail. */
    pause: number;
    /** When the newest event of the room in that mail became pending, in milliseconds since the epoch. */
    newest_at: number;
  };
  /** One row: all events up to this position on the stream were added to `pending_pushes`. */
  pusher_progress: {
    id: number;
    position: number;
  };
}
