import { type Cache, type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import { LoadOnce } from '../kernel/load-once.ts';
import { LoadTogether } from '../kernel/load-together.ts';
import { ReadUpTo } from './read-up-to.ts';
import type { Receipt } from './receipt.ts';

/** Maximum number of pairs of a user and a room whose read positions are cached. */
const maxCached = 100_000;

/** Estimated bytes of the cached read positions of a user in a room, without those in threads. */
const entryBytes = 120;

/** Estimated bytes of a read position in a thread. */
const threadBytes = 80;

/** A user in a room. */
interface UserInRoom {
  readonly userId: string;
  readonly roomId: string;
}

/** Caches how far users have read the rooms that they use. */
export class ReadPositions {
  readonly #receipts: LoadTogether<UserInRoom, readonly Receipt[]>;
  readonly #cached: Cache<string, ReadUpTo>;
  readonly #loading = new LoadOnce<string, ReadUpTo>();

  /** @param load reads all receipts of a user in some rooms */
  constructor(
    load: (userId: string, roomIds: readonly string[]) => Promise<readonly Receipt[]>,
    caches: CacheRegistry,
  ) {
    this.#cached = caches.create('read_positions', {
      size: maxCached,
      maxBytes: 8 * MiB,
      sizeOf: ({ size }) => entryBytes + threadBytes * size,
    });
    this.#receipts = new LoadTogether((usersInRooms) => loadReceipts(usersInRooms, load));
  }

  /** Returns how far a user has read a room; synchronously when it is cached. */
  get(userId: string, roomId: string): ReadUpTo | Promise<ReadUpTo> {
    const key = keyOf(userId, roomId);
    const cached = this.#cached.get(key);
    if (cached) return cached;
    const load = async () => new ReadUpTo((await this.#receipts.get({ userId, roomId })) ?? []);
    return this.#loading.run(key, load, (read) => this.#cached.set(key, read));
  }

  /** Updates the cached read position of a user by a receipt that was stored. */
  add(receipt: Receipt): void {
    const key = keyOf(receipt.userId, receipt.roomId);
    this.#loading.forget(key); // a running load may have read before the receipt was written
    const cached = this.#cached.get(key);
    if (cached) this.#cached.set(key, cached.withReceipt(receipt));
  }
}

/** Reads the receipts of users in rooms, with one call for each user. */
async function loadReceipts(
  usersInRooms: readonly UserInRoom[],
  load: (userId: string, roomIds: readonly string[]) => Promise<readonly Receipt[]>,
): Promise<Map<UserInRoom, readonly Receipt[]>> {
  const receiptsByUserInRoom = new Map<UserInRoom, readonly Receipt[]>();
  for (const [userId, roomsOfUser] of Map.groupBy(usersInRooms, (userInRoom) => userInRoom.userId)) {
    const receipts = await load(
      userId,
      roomsOfUser.map(({ roomId }) => roomId),
    );
    const byRoom = Map.groupBy(receipts, ({ roomId }) => roomId);
    for (const userInRoom of roomsOfUser)
      receiptsByUserInRoom.set(userInRoom, byRoom.get(userInRoom.roomId) ?? []);
  }
  return receiptsByUserInRoom;
}

const keyOf = (userId: string, roomId: string): string => `${userId}\0${roomId}`;
