/** A thread and a user who may subscribe to it. */
export interface ThreadKey {
  readonly userId: string;
  readonly roomId: string;
  /** The root event of the thread. */
  readonly rootId: string;
}

/** Whether a user follows a thread, and whether the user or a client decided so. */
export type ThreadState = 'manual' | 'automatic' | 'none';

/** The subscription of a user to a thread, and the position of its last change. */
export interface ThreadEntry extends Omit<ThreadKey, 'userId'> {
  readonly state: ThreadState;
  readonly position: number;
}
