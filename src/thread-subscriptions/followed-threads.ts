import { type Cache, type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import { LoadOnce } from '../kernel/load-once.ts';
import { whenReady } from '../kernel/when-ready.ts';

/** Maximum number of users whose threads are cached. */
const maxUsers = 40_000;

/**
 * Maximum number of cached threads of one user. When a user follows more threads, push rules know only the threads that
 * were followed last.
 */
const maxThreads = 10_000;

type Threads = ReadonlyMap<string, ReadonlySet<string>>;
const none: ReadonlySet<string> = new Set();

/** Caches the threads that users follow. */
export class FollowedThreads {
  readonly #users: Cache<string, Threads>;
  readonly #loading = new LoadOnce<string, Threads>();
  readonly #load: (userId: string, limit: number) => Promise<readonly { roomId: string; rootId: string }[]>;

  /** @param load reads the threads that a user follows, the last followed first */
  constructor(
    caches: CacheRegistry,
    load: (userId: string, limit: number) => Promise<readonly { roomId: string; rootId: string }[]>,
  ) {
    this.#users = caches.create('followed_threads', {
      size: maxUsers,
      maxBytes: 5 * MiB,
      sizeOf: sizeOfThreads,
    });
    this.#load = load;
  }

  /**
   * Returns the root ids of the threads that a user follows in a room. Returns at once when they are in
   * memory.
   */
  in(userId: string, roomId: string): ReadonlySet<string> | Promise<ReadonlySet<string>> {
    return whenReady(this.#of(userId), (threads) => threads.get(roomId) ?? none);
  }

  /** Drops the cached threads of a user, whose subscriptions have changed. */
  forget(userId: string): void {
    this.#users.delete(userId);
    this.#loading.forget(userId);
  }

  #of(userId: string): Threads | Promise<Threads> {
    const known = this.#users.get(userId);
    if (known) return known;
    const keep = (threads: Threads) => this.#users.set(userId, threads);
    return this.#loading.run(userId, () => this.#read(userId), keep);
  }

  async #read(userId: string): Promise<Threads> {
    const threads = new Map<string, Set<string>>();
    for (const { roomId, rootId } of await this.#load(userId, maxThreads)) {
      const inRoom = threads.get(roomId);
      if (inRoom) inRoom.add(rootId);
      else threads.set(roomId, new Set([rootId]));
    }
    return threads;
  }
}

/** Estimated bytes of a room with its set of threads. */
const roomBytes = 200;

/** Estimated bytes of a thread. */
const threadBytes = 100;

function sizeOfThreads(threads: Threads): number {
  let bytes = roomBytes * threads.size;
  for (const inRoom of threads.values()) bytes += threadBytes * inRoom.size;
  return bytes;
}
