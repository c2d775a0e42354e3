import { RecentlyUsed } from '../../kernel/caches/index.ts';
import type { Limiter } from '../limits.ts';

/** Maximum number of stored sessions of one user or address. */
const maxPerOwner = 100;

/** Users and addresses whose sessions are remembered. */
const ownersInMemory = 10_000;

/** Bounds the sessions of interactive authentication, since they can be begun without an account. */
export class SessionBounds {
  readonly #limiter: Limiter;
  /** Owner to the hashes of the ids of the sessions, oldest first. */
  readonly #sessions = new RecentlyUsed<string, readonly string[]>({ max: ownersInMemory });

  constructor(limiter: Limiter) {
    this.#limiter = limiter;
  }

  /**
   * Counts a new session.
   * @param owner user id, or address of the client
   * @returns the hashes of the ids of the owner's oldest sessions, which must be deleted
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
