import { type Cache, type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import { LoadOnce } from '../kernel/load-once.ts';
import { ReadUpTo } from './read-up-to.ts';
import type { Receipt } from './receipt.ts';

/** Bounds the pairs of user and room whose read positions are cached. */
const maxCached = 100_000;

/** Caches how far users have read the rooms that they use. */
export class ReadPositions {
  readonly #load: (userId: string, roomId: string) => Promise<Receipt[]>;
  readonly #known: Cache<string, ReadUpTo>;
  readonly #loading = new LoadOnce<string, ReadUpTo>();

  /** @param load all receipts of a user in a room */
  constructor(load: (userId: string, roomId: string) => Promise<Receipt[]>, caches: CacheRegistry) {
    this.#known = caches.create('read_positions', {
      size: maxCached,
      maxBytes: 8 * MiB,
      sizeOf: ({ size }) => 120 + 80 * size,
    });
    this.#load = load;
  }

  /** Returns at once when it is in memory. */
  get(userId: string, roomId: string): ReadUpTo | Promise<ReadUpTo> {
    const key = keyOf(userId, roomId);
    const known = this.#known.get(key);
    if (known) return known;
    const load = async () => new ReadUpTo(await this.#load(userId, roomId));
    return this.#loading.run(key, load, (read) => this.#known.set(key, read));
  }

  /** Applies a receipt that was stored. */
  add(receipt: Receipt): void {
    const key = keyOf(receipt.userId, receipt.roomId);
    this.#loading.forget(key); // a running load may have read before the receipt was written
    const known = this.#known.get(key);
    if (known) this.#known.set(key, known.and(receipt));
  }
}

const keyOf = (userId: string, roomId: string): string => `${userId}\0${roomId}`;
