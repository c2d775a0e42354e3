import { RecentlyUsed } from '../kernel/caches/index.ts';
import { ReadUpTo } from './read-up-to.ts';
import type { Receipt } from './receipt.ts';

/** How many users' positions are remembered, in each room separately. */
const remembered = 100_000;

/** How far users have read the rooms that they use, in memory. */
export class ReadPositions {
  readonly #load: (userId: string, roomId: string) => Promise<Receipt[]>;
  readonly #known = new RecentlyUsed<string, ReadUpTo>({ max: remembered });
  readonly #loading = new Map<string, Promise<ReadUpTo>>();

  /** @param load all receipts of a user in a room */
  constructor(load: (userId: string, roomId: string) => Promise<Receipt[]>) {
    this.#load = load;
  }

  peek(userId: string, roomId: string): ReadUpTo | undefined {
    return this.#known.get(keyOf(userId, roomId));
  }

  async get(userId: string, roomId: string): Promise<ReadUpTo> {
    const key = keyOf(userId, roomId);
    const known = this.#known.get(key);
    if (known) return known;
    let loading = this.#loading.get(key);
    if (!loading) {
      loading = this.#read(key, userId, roomId);
      this.#loading.set(key, loading);
    }
    return loading;
  }

  /** Takes note of a receipt that is on disk. */
  add(receipt: Receipt): void {
    const key = keyOf(receipt.userId, receipt.roomId);
    this.#loading.delete(key); // it may have looked before the receipt was there
    const known = this.#known.get(key);
    if (known) this.#known.set(key, known.and(receipt));
  }

  #read(key: string, userId: string, roomId: string): Promise<ReadUpTo> {
    const isCurrent = () => this.#loading.get(key) === reading;
    const reading: Promise<ReadUpTo> = this.#load(userId, roomId)
      .then((receipts) => {
        const read = new ReadUpTo(receipts);
        if (isCurrent()) this.#known.set(key, read);
        return read;
      })
      .finally(() => {
        if (isCurrent()) this.#loading.delete(key);
      });
    return reading;
  }
}

const keyOf = (userId: string, roomId: string): string => `${userId}\0${roomId}`;
