import type { Cache, CacheRegistry } from '../kernel/caches/index.ts';
import type { PresenceFact } from './presence-fact.ts';
import { offline, type PresenceStatus } from './presence-status.ts';

/**
 * Maximum number of offline users whose last presence is kept in memory. It is kept because the main process writes it
 * to the database up to a minute late.
 */
const maxOffline = 50_000;

/** The presence of all users in a reader process, as the main process has announced it. */
export class FollowedPresence {
  /** The presence of the users who are not offline. */
  readonly notOffline = new Map<string, PresenceStatus>();
  readonly #offline: Cache<string, PresenceStatus>;

  constructor(caches: CacheRegistry) {
    this.#offline = caches.create('followed_presence', { size: maxOffline });
  }

  /** Adds the stored presence of users; a presence that was announced meanwhile is newer and stays. */
  restore(stored: ReadonlyMap<string, PresenceStatus>): void {
    for (const [userId, status] of stored) if (!this.get(userId)) this.notOffline.set(userId, status);
  }

  /** Applies changes that the main process has announced. */
  follow({ changes }: PresenceFact): void {
    for (const [userId, status] of changes) {
      if (status.presence === 'offline') {
        this.notOffline.delete(userId);
        this.#offline.set(userId, status);
      } else {
        this.notOffline.set(userId, status);
        this.#offline.delete(userId);
      }
    }
  }

  /** Returns the presence that was announced last; `undefined` for most offline users. */
  get(userId: string): PresenceStatus | undefined {
    return this.notOffline.get(userId) ?? this.#offline.peek(userId);
  }

  /** Removes presence and status message of a user whose account is closed. */
  forget(userId: string): void {
    this.notOffline.delete(userId);
    this.#offline.set(userId, offline);
  }
}
