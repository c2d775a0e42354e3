/** The tables of push rules and unread counts. */
export interface PushTables {
  /** The changes of users to their push rules; users who changed nothing have no row. */
  push_rules: {
    user_id: string;
    /** `UserPushRules` as JSON. */
    rules: string;
    /** The position of the last change. */
    position: number;
  };
  /** Tallies of unread events, so that a restart need not evaluate them again. */
  unread_tallies: {
    user_id: string;
    room_id: string;
    /** The stream position up to which events were evaluated. */
    up_to: number;
    /** `UnreadMark`s as JSON: `[stream, highlight (0 or 1), id of the root unless on the main timeline]`. */
    marks: string;
  };
}
