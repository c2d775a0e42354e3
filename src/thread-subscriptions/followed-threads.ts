import { RecentlyUsed } from '../kernel/caches/index.ts';
import { LoadOnce } from '../kernel/load-once.ts';
import { whenReady } from '../kernel/when-ready.ts';

/** Users whose threads are in memory, and threads of one user: rules see the newest of those who follow more. */
const [usersInMemory, maxThreads] = [20_000, 10_000];

type Threads = ReadonlyMap<string, ReadonlySet<string>>;
const none: ReadonlySet<string> = new Set();

/** The threads that users follow, in memory. */
export class FollowedThreads {
  readonly #users = new RecentlyUsed<string, Threads>({ max: usersInMemory });
  readonly #loading = new LoadOnce<string, Threads>();
  readonly #load: (userId: string, limit: number) => Promise<readonly { roomId: string; rootId: string }[]>;

  /** @param load reads the threads that a user follows, newest first */
  constructor(
    load: (userId: string, limit: number) => Promise<readonly { roomId: string; rootId: string }[]>,
  ) {
    this.#load = load;
  }

  /** Ids of the events that the threads of a user in a room begin with. Returns at once when they are in memory. */
  in(userId: string, roomId: string): ReadonlySet<string> | Promise<ReadonlySet<string>> {
    return whenReady(this.#of(userId), (threads) => threads.get(roomId) ?? none);
  }

  /** The threads of a user have changed: they are read again. */
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
