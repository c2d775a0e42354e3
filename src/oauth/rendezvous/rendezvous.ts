import { hash } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';

/** Data that two devices exchange while one of them is logged in by a QR code. Immutable. */
export interface RendezvousData {
  readonly data: string;
  /** Changes with each write: the `ETag` of MSC4108, the `sequence_token` of MSC4388. */
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly changedAt: number;
  readonly expiresAt: number;
}

interface Session extends RendezvousData {
  /** The token before the last write, so that a repeated write is recognized. */
  readonly previousToken: string | undefined;
}

export type RendezvousWrite = 'written' | 'conflict' | 'unknown';

export interface RendezvousDeps {
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** Maximum bytes of the data of one session, and maximum number of sessions: at most 4 MiB together. */
export const maxDataBytes = 4_096;
const maxSessions = 1_000;

/** The sessions of logins by QR code. They are in memory only: after a restart the user begins again. */
export class Rendezvous {
  readonly #deps: RendezvousDeps;
  readonly #lifetime: number;
  readonly #maxSessions: number;
  /** In the order in which they expire. */
  readonly #sessions = new Map<string, Session>();
  #writes = 0;

  /**
   * @param lifetime milliseconds
   * @param limit maximum number of sessions; the oldest is deleted for a new one
   */
  constructor(deps: RendezvousDeps, lifetime: number, limit = maxSessions) {
    this.#deps = deps;
    this.#lifetime = lifetime;
    this.#maxSessions = limit;
  }

  /** Creates a session. @returns its id and its data */
  create(data: string): { readonly id: string } & RendezvousData {
    const now = this.#deps.clock.now();
    for (const [id, { expiresAt }] of this.#sessions) {
      if (expiresAt > now && this.#sessions.size < this.#maxSessions) break;
      this.#sessions.delete(id);
    }
    const id = randomString(this.#deps.randomness, 26);
    const session = {
      data,
      token: this.#newToken(data),
      previousToken: undefined,
      changedAt: now,
      expiresAt: now + this.#lifetime,
    };
    this.#sessions.set(id, session);
    return { id, ...session };
  }

  read(id: string): RendezvousData | undefined {
    const session = this.#sessions.get(id);
    return session && session.expiresAt > this.#deps.clock.now() ? session : undefined;
  }

  /**
   * Replaces the data, unless another device has replaced it since it was read. A repeated write is recognized.
   * @param token of the data that is replaced
   */
  write(id: string, token: string, data: string): RendezvousWrite {
    const session = this.read(id) as Session | undefined;
    if (session === undefined) return 'unknown';
    if (session.token !== token) {
      return session.previousToken === token && session.data === data ? 'written' : 'conflict';
    }
    const changedAt = this.#deps.clock.now();
    this.#sessions.set(id, {
      ...session,
      data,
      token: this.#newToken(data),
      previousToken: token,
      changedAt,
    });
    return 'written';
  }

  /** @returns whether the session existed */
  delete(id: string): boolean {
    return this.#sessions.delete(id);
  }

  #newToken(data: string): string {
    this.#writes += 1;
    return hash('sha256', `${this.#writes} ${data}`, 'base64url');
  }
}
