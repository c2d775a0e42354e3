/** An event that notifies a user and is unread. */
export interface UnreadMark {
  /** Its position on the stream of rooms. */
  readonly stream: number;
  readonly highlight: boolean;
  /** The root of its thread; `undefined` for the main timeline. */
  readonly threadId: string | undefined;
  /** The time that its sender claimed, in milliseconds since the epoch; `Infinity` where it is not known. */
  readonly sentTs: number;
}
