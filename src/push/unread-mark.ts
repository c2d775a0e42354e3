/** An event that notifies a user and is unread. */
export interface UnreadMark {
  /** Position of the event on the stream of rooms. */
  readonly stream: number;
  /** Whether a push rule highlights the event. */
  readonly highlight: boolean;
  /** The root of the event's thread; `undefined` for the main timeline. */
  readonly threadId: string | undefined;
  /** The time that the sender claimed, in milliseconds since the epoch; `Infinity` where this time is not known. */
  readonly sentTs: number;
}
