import { MAIN_TIMELINE } from '../protocol/index.ts';
import type { Receipt } from './receipt.ts';

type Reach = Pick<Receipt, 'threadId' | 'stream'>;

/**
 * How far a user has read a room, by positions on the stream of rooms. Of public and private receipts the one that is
 * further ahead counts. Immutable. Source: client-server API, "Marking notifications as read".
 */
export class ReadUpTo {
  /** Up to where all events have been read, whatever thread they are in. */
  readonly room: number;
  readonly #threads: ReadonlyMap<string, number>;

  /** @param receipts of one user in one room; those whose event is not known do not count */
  constructor(receipts: Iterable<Reach>) {
    const threads = new Map<string, number>();
    let room = 0;
    for (const { threadId, stream = 0 } of receipts) {
      if (threadId === undefined) room = Math.max(room, stream);
      else threads.set(threadId, Math.max(threads.get(threadId) ?? 0, stream));
    }
    this.room = room;
    this.#threads = threads;
  }

  /** Up to where a thread has been read. @param threadId `main` or the id of the root */
  thread(threadId: string = MAIN_TIMELINE): number {
    return Math.max(this.room, this.#threads.get(threadId) ?? 0);
  }

  /** With one receipt more. */
  and(receipt: Reach): ReadUpTo {
    const threads = [...this.#threads].map(([threadId, stream]) => ({ threadId, stream }));
    return new ReadUpTo([{ threadId: undefined, stream: this.room }, ...threads, receipt]);
  }
}
