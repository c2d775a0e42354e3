import { MAIN_TIMELINE } from '../protocol/index.ts';
import type { Receipt } from './receipt.ts';

/** The position up to which a receipt marks a thread, or the whole room, as read. */
type ThreadPosition = Pick<Receipt, 'threadId' | 'stream'>;

/**
 * How far a user has read a room, as positions on the stream of rooms: the higher of the public and the
 * private receipt. Immutable. Source: client-server API, "Marking notifications as read".
 */
export class ReadUpTo {
  /** Events of all threads are read up to this position. */
  readonly room: number;
  readonly #threads: ReadonlyMap<string, number>;

  /** Number of threads that have their own position. */
  get size(): number {
    return this.#threads.size;
  }

  /** @param receipts of one user in one room; receipts for unknown events do not count */
  constructor(receipts: Iterable<ThreadPosition>) {
    const threads = new Map<string, number>();
    let room = 0;
    for (const { threadId, stream = 0 } of receipts) {
      if (threadId === undefined) room = Math.max(room, stream);
      else threads.set(threadId, Math.max(threads.get(threadId) ?? 0, stream));
    }
    this.room = room;
    this.#threads = threads;
  }

  /** Returns the position up to which a thread is read. @param threadId `main` or the id of the root */
  thread(threadId: string = MAIN_TIMELINE): number {
    return Math.max(this.room, this.#threads.get(threadId) ?? 0);
  }

  /** Returns a copy with one more receipt. */
  withReceipt(receipt: ThreadPosition): ReadUpTo {
    const threads = [...this.#threads].map(([threadId, stream]) => ({ threadId, stream }));
    return new ReadUpTo([{ threadId: undefined, stream: this.room }, ...threads, receipt]);
  }
}
