/** The table of subscriptions to threads. */
export interface ThreadSubscriptionTables {
  thread_subscriptions: {
    user_id: string;
    room_id: string;
    /** The event that the thread begins with. */
    root_id: string;
    /** `manual`, `automatic`, or `none` once the user has unsubscribed. */
    state: string;
    /** The position of the last change. */
    position: number;
  };
}
