import { RecentlyUsed } from '../../kernel/caches/index.ts';
import type { Requester } from '../../kernel/http/index.ts';

/** What a good access token stands for. Immutable. */
export interface Session {
  readonly requester: Requester;
  readonly isLocked: boolean;
  /** Milliseconds since the epoch; `undefined` when it does not expire. */
  readonly expiresAt: number | undefined;
}

/** Enough for the sessions that are in use at once on a large server. */
const capacity = 20_000;

/**
 * Milliseconds that nothing is cached for a user whose sessions are about to change, when no word comes that they
 * have changed (the transaction failed).
 */
const quarantine = 30_000;

/** Sessions in memory, by the hash of their access token, so that a request costs no query. */
export class SessionCache {
  readonly #sessions: RecentlyUsed<string, Session>;
  readonly #hashesOf = new Map<string, Set<string>>();
  readonly #changing = new Map<string, number>();
  #generation = 0;

  /** @param max sessions that are kept; about 500 bytes each */
  constructor(max = capacity) {
    this.#sessions = new RecentlyUsed({
      max,
      dispose: (session, hash) => this.#unindex(session.requester.userId, hash),
      noDisposeOnSet: true,
    });
  }

  get(hash: string): Session | undefined {
    return this.#sessions.get(hash);
  }

  /** Grows with every change: a session that was read under an earlier one may be outdated. */
  get generation(): number {
    return this.#generation;
  }

  /** Remembers what was read under `generation`, unless something has changed or is about to. */
  put(hash: string, session: Session, generation: number, now: number): void {
    const { userId } = session.requester;
    if (generation !== this.#generation || now < (this.#changing.get(userId) ?? 0)) return;
    this.#sessions.set(hash, session);
    const hashes = this.#hashesOf.get(userId);
    if (hashes) hashes.add(hash);
    else this.#hashesOf.set(userId, new Set([hash]));
  }

  /** A transaction that changes the user's sessions is under way: until `forget`, the database is asked each time. */
  suspect(userId: string, now: number): void {
    for (const [user, until] of this.#changing) if (until <= now) this.#changing.delete(user);
    this.#changing.set(userId, now + quarantine);
    this.#drop(userId);
  }

  /** The user's sessions, or what they may do, have changed. */
  forget(userId: string): void {
    this.#changing.delete(userId);
    this.#drop(userId);
  }

  #drop(userId: string): void {
    this.#generation++;
    for (const hash of [...(this.#hashesOf.get(userId) ?? [])]) this.#sessions.delete(hash);
  }

  #unindex(userId: string, hash: string): void {
    const hashes = this.#hashesOf.get(userId);
    hashes?.delete(hash);
    if (hashes?.size === 0) this.#hashesOf.delete(userId);
  }
}
