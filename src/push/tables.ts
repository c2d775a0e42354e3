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
  /** The unread events of users by room (tallies), so that a restart need not evaluate the push rules again. */
  unread_tallies: {
    user_id: string;
    room_id: string;
    /** Events up to this stream position were evaluated. */
    up_to: number;
    /**
     * The unread events as JSON of `StoredMarks`; in rows of earlier server versions an array of `[stream position,
     * highlight (0 or 1), id of the thread root or null, time of sending or null]`.
     */
    marks: string;
  };
}
