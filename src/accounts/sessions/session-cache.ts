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

/** Sessions in memory, by their access token, so that a request costs neither a query nor a hash. */
export class SessionCache {
  readonly #sessions: RecentlyUsed<string, Session>;
  readonly #tokensOf = new Map<string, Set<string>>();
  readonly #changing = new Map<string, number>();
  #generation = 0;

  /** @param max sessions that are kept; about 500 bytes each */
  constructor(max = capacity) {
    this.#sessions = new RecentlyUsed({
      max,
      dispose: (session, token) => this.#unindex(session.requester.userId, token),
      noDisposeOnSet: true,
    });
  }

  get(token: string): Session | undefined {
    return this.#sessions.get(token);
  }

  /** Grows with every change: a session that was read under an earlier one may be outdated. */
  get generation(): number {
    return this.#generation;
  }

  /** Remembers what was read under `generation`, unless something has changed or is about to. */
  put(token: string, session: Session, generation: number, now: number): void {
    const { userId } = session.requester;
    if (generation !== this.#generation || now < (this.#changing.get(userId) ?? 0)) return;
    this.#sessions.set(token, session);
    const tokens = this.#tokensOf.get(userId);
    if (tokens) tokens.add(token);
    else this.#tokensOf.set(userId, new Set([token]));
  }

  /** A transaction that changes the user's sessions is under way: until `forget`, the database is asked each time. */
  beginChange(userId: string, now: number): void {
    for (const [user, until] of this.#changing) if (until <= now) this.#changing.delete(user);
    this.#changing.set(userId, now + quarantine);
    this.#drop(userId);
  }

  /** The user's sessions, or what they may do, have changed. */
  invalidate(userId: string): void {
    this.#changing.delete(userId);
    this.#drop(userId);
  }

  #drop(userId: string): void {
    this.#generation++;
    for (const token of [...(this.#tokensOf.get(userId) ?? [])]) this.#sessions.delete(token);
  }

  #unindex(userId: string, token: string): void {
    const tokens = this.#tokensOf.get(userId);
    tokens?.delete(token);
    if (tokens?.size === 0) this.#tokensOf.delete(userId);
  }
}
