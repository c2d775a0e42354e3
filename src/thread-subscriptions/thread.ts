/** A thread as one user sees it. */
export interface ThreadKey {
  readonly userId: string;
  readonly roomId: string;
  /** The event that the thread begins with. */
  readonly rootId: string;
}

/** Whether a user follows a thread, and whether a client decided so or the user. */
export type ThreadState = 'manual' | 'automatic' | 'none';

/** What a user has decided about a thread, and where on the stream. */
export interface ThreadEntry extends Omit<ThreadKey, 'userId'> {
  readonly state: ThreadState;
  readonly position: number;
}
