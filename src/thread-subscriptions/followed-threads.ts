import { RecentlyUsed } from '../kernel/caches/index.ts';

/** Users whose threads are in memory, and threads of one user: rules see the newest of those who follow more. */
const [usersInMemory, maxThreads] = [20_000, 10_000];

type Threads = ReadonlyMap<string, ReadonlySet<string>>;
const none: ReadonlySet<string> = new Set();

/** The threads that users follow, in memory. */
export class FollowedThreads {
  readonly #users = new RecentlyUsed<string, Promise<Threads>>({ max: usersInMemory });
  readonly #present = new WeakMap<Promise<Threads>, Threads>();
  readonly #load: (userId: string, limit: number) => Promise<readonly { roomId: string; rootId: string }[]>;

  /** @param load what is stored, the newest first */
  constructor(
    load: (userId: string, limit: number) => Promise<readonly { roomId: string; rootId: string }[]>,
  ) {
    this.#load = load;
  }

  /** Ids of the events that the threads begin with. */
  async in(userId: string, roomId: string): Promise<ReadonlySet<string>> {
    return (await this.#of(userId)).get(roomId) ?? none;
  }

  /** `in` when it is in memory. */
  peek(userId: string, roomId: string): ReadonlySet<string> | undefined {
    const loading = this.#users.get(userId);
    const threads = loading && this.#present.get(loading);
    return threads && (threads.get(roomId) ?? none);
  }

  /** Something has changed: it is looked up again. */
  forget(userId: string): void {
    this.#users.delete(userId);
  }

  #of(userId: string): Promise<Threads> {
    const known = this.#users.get(userId);
    if (known) return known;
    const loading = this.#read(userId);
    this.#users.set(userId, loading);
    loading.then(
      (threads) => this.#present.set(loading, threads),
      () => {
        if (this.#users.peek(userId) === loading) this.#users.delete(userId);
      },
    );
    return loading;
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
