import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Requester } from '../../kernel/http/index.ts';

/** The session of a valid access token. Immutable. */
export interface Session {
  readonly requester: Requester;
  readonly isLocked: boolean;
  /** The administrator who uses the session to act as the user. */
  readonly administrator?: string | undefined;
  /** Milliseconds since the epoch; `undefined` when the access token does not expire. */
  readonly expiresAt: number | undefined;
  /**
   * The session is read again after this time, in milliseconds since the epoch. `undefined`: it is cached until the
   * user's sessions change.
   */
  readonly usableUntil?: number | undefined;
}

/** Default maximum number of cached sessions: enough for all sessions in concurrent use on a large server. */
const capacity = 20_000;

/**
 * Milliseconds after `beginChange` until sessions of the user are cached again although `invalidate` was not called,
 * because the transaction has failed.
 */
const changeTimeout = 30_000;

/** Caches sessions by access token, so that a request needs neither a query nor a hash. */
export class SessionCache {
  readonly #sessions: Cache<string, Session>;
  /** The access tokens of cached sessions, by user id. */
  readonly #tokensOf = new Map<string, Set<string>>();
  /**
   * Users whose sessions are being changed, each with the time when the change times out, in milliseconds since the
   * epoch.
   */
  readonly #changesUntil = new Map<string, number>();
  #generation = 0;

  /** @param size maximum number of sessions */
  constructor(caches: CacheRegistry, size = capacity) {
    this.#sessions = caches.create('sessions', {
      size,
      maxBytes: 8 * MiB,
      sizeOf: () => 400,
      onRemove: (session, token) => this.#unindex(session.requester.userId, token),
    });
  }

  get(token: string): Session | undefined {
    return this.#sessions.get(token);
  }

  /** Increases with every change: a session that was read in an earlier generation may be outdated. */
  get generation(): number {
    return this.#generation;
  }

  /** Caches a session that was read in `generation`, unless a change has happened since or is under way. */
  put(token: string, session: Session, generation: number, now: number): void {
    const { userId } = session.requester;
    if (generation !== this.#generation || now < (this.#changesUntil.get(userId) ?? 0)) return;
    this.#sessions.set(token, session);
    const tokens = this.#tokensOf.get(userId);
    if (tokens) tokens.add(token);
    else this.#tokensOf.set(userId, new Set([token]));
  }

  /** Begins a change of the user's sessions. They are not cached until `invalidate` is called or the change times out. */
  beginChange(userId: string, now: number): void {
    for (const [user, until] of this.#changesUntil) if (until <= now) this.#changesUntil.delete(user);
    this.#changesUntil.set(userId, now + changeTimeout);
    this.#drop(userId);
  }

  /** Deletes the user's sessions after they, or the rights of the user, have changed. */
  invalidate(userId: string): void {
    this.#changesUntil.delete(userId);
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
