import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { ConcurrencyLimit } from '../../kernel/concurrency-limit.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { Logger } from '../../kernel/observability/index.ts';

/** Milliseconds after a failed task before it runs again for the same user. */
const retryDelay = 3_600_000;

/** Maximum number of tasks that run at the same time: thousands of users may become due at once. */
const maxRunning = 10;

/** Maximum number of tasks that wait. */
const maxWaiting = 20_000;

/**
 * Runs a task for each active user once. Tasks must be idempotent: a task runs again for a user whom the cache has
 * dropped. A failed task runs again at the user's first activity after an hour.
 */
export class OncePerUser {
  /**
   * Until when the task of a user does not run again, as a reading of the monotonic clock; `Infinity` when it is done.
   */
  readonly #skipUntil: Cache<string, number>;
  readonly #running = new LoadOnce<string, void>();
  readonly #limit = new ConcurrencyLimit(maxRunning, maxWaiting);
  /** Number of calls of `runAgain`: a task that began before the last one does not count as done. */
  #round = 0;
  readonly #log: Logger;
  readonly #clock: Clock;

  /** @param cacheName the name of the cache of the users whose task has run */
  constructor(
    cacheName: string,
    { caches, clock, log }: { readonly caches: CacheRegistry; readonly clock: Clock; readonly log: Logger },
  ) {
    this.#clock = clock;
    this.#skipUntil = caches.create(cacheName, { size: 10_000, maxBytes: MiB, sizeOf: () => 100 });
    this.#log = log;
  }

  /** Runs the task in the background unless it is done for this user or running. */
  run(userId: string, task: () => Promise<void>): void {
    if ((this.#skipUntil.get(userId) ?? 0) > this.#clock.monotonic() || this.#running.get(userId)) return;
    const round = this.#round;
    const skipUntil = (time: number) => {
      if (round === this.#round) this.#skipUntil.set(userId, time);
    };
    this.#running
      .run(
        userId,
        () => this.#runWithinLimit(task),
        () => skipUntil(Number.POSITIVE_INFINITY),
      )
      .catch((err: unknown) => {
        skipUntil(this.#clock.monotonic() + retryDelay);
        this.#log.warn({ err, user: userId }, 'Failed to send or unpin a server notice');
      });
  }

  /** @throws Error when too many tasks wait */
  async #runWithinLimit(task: () => Promise<void>): Promise<void> {
    const hasRun = await this.#limit.run(async () => {
      await task();
      return true;
    });
    if (!hasRun) throw new Error('Too many server notices wait');
  }

  /**
   * Runs the tasks of all users again. A task that is running is first completed, so that two never run for one user.
   */
  runAgain(): void {
    this.#round += 1;
    this.#skipUntil.clear();
  }

  /** Resolves when no task is running. */
  settled(): Promise<void> {
    return this.#running.settled();
  }
}
