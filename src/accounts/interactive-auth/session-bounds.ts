import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Limiter } from '../limits.ts';

/** Milliseconds until a session of interactive authentication expires. */
export const sessionLifetime = 24 * 3_600_000;

/** Maximum number of stored sessions of one user or address. */
const maxPerOwner = 100;

/** Maximum number of users and addresses whose sessions are counted. */
const ownersInMemory = 10_000;

/** Estimated bytes of the hash of a session id in memory. */
const hashBytes = 80;

/** Bounds the sessions of interactive authentication, since clients can start them without an account. */
export class SessionBounds {
  readonly #limiter: Limiter;
  /** Hashed session ids by owner, oldest session first. */
  readonly #sessions: Cache<string, readonly string[]>;

  constructor(limiter: Limiter, caches: CacheRegistry) {
    // The size is fixed, because an owner whose sessions were evicted could begin more than the maximum.
    this.#sessions = caches.create('interactive_auth_sessions', {
      size: ownersInMemory,
      maxBytes: 4 * MiB,
      sizeOf: (sessions) => hashBytes * sessions.length,
      fixed: true,
    });
    this.#limiter = limiter;
  }

  /**
   * Counts a new session.
   * @param owner user id, or address of the client
   * @returns the hashed ids of the owner's oldest sessions beyond the maximum; the caller must delete these sessions
   * @throws MatrixError M_LIMIT_EXCEEDED
   */
  begin(owner: string, idHash: string): readonly string[] {
    this.#limiter.take(owner);
    const sessions = [...(this.#sessions.get(owner) ?? []), idHash];
    const surplus = sessions.splice(0, Math.max(0, sessions.length - maxPerOwner));
    this.#sessions.set(owner, sessions);
    return surplus;
  }
}
