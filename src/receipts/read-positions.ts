import { type Cache, type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import { LoadOnce } from '../kernel/load-once.ts';
import { LoadTogether } from '../kernel/load-together.ts';
import { ReadUpTo } from './read-up-to.ts';
import type { Receipt } from './receipt.ts';

/** Bounds the pairs of user and room whose read positions are cached. */
const maxCached = 100_000;

/** A user in a room. */
interface Reader {
  readonly userId: string;
  readonly roomId: string;
}

/** Caches how far users have read the rooms that they use. */
export class ReadPositions {
  readonly #stored: LoadTogether<Reader, readonly Receipt[]>;
  readonly #known: Cache<string, ReadUpTo>;
  readonly #loading = new LoadOnce<string, ReadUpTo>();

  /** @param load reads all receipts of a user in some rooms */
  constructor(
    load: (userId: string, roomIds: readonly string[]) => Promise<readonly Receipt[]>,
    caches: CacheRegistry,
  ) {
    this.#known = caches.create('read_positions', {
      size: maxCached,
      maxBytes: 8 * MiB,
      sizeOf: ({ size }) => 120 + 80 * size,
    });
    this.#stored = new LoadTogether((readers) => loadOf(readers, load));
  }

  /** Returns how far a user has read a room; synchronously when it is cached. */
  get(userId: string, roomId: string): ReadUpTo | Promise<ReadUpTo> {
    const key = keyOf(userId, roomId);
    const known = this.#known.get(key);
    if (known) return known;
    const load = async () => new ReadUpTo((await this.#stored.get({ userId, roomId })) ?? []);
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

/** Reads the receipts of users in rooms, with one call for each user. */
async function loadOf(
  readers: readonly Reader[],
  load: (userId: string, roomIds: readonly string[]) => Promise<readonly Receipt[]>,
): Promise<Map<Reader, readonly Receipt[]>> {
  const found = new Map<Reader, readonly Receipt[]>();
  for (const [userId, ofUser] of Map.groupBy(readers, (reader) => reader.userId)) {
    const receipts = await load(
      userId,
      ofUser.map(({ roomId }) => roomId),
    );
    const byRoom = Map.groupBy(receipts, ({ roomId }) => roomId);
    for (const reader of ofUser) found.set(reader, byRoom.get(reader.roomId) ?? []);
  }
  return found;
}

const keyOf = (userId: string, roomId: string): string => `${userId}\0${roomId}`;
