import { hash } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import { addressKey } from '../../kernel/rate-limits/index.ts';

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
  /** The `addressKey` of the client that created the session. */
  readonly address: string;
  /** The token before the last write, so that a repeated write is recognized. */
  readonly previousToken: string | undefined;
}

/** The result of a write. `conflict`: another device has written in between; `unknown`: there is no such session. */
export type RendezvousWrite = 'written' | 'conflict' | 'unknown';

export interface RendezvousDeps {
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** Maximum bytes of the data of one session. */
export const maxDataBytes = 4_096;

/** Maximum number of sessions; their data have at most 4 MiB together. */
const maxSessions = 1_000;

/** The sessions of logins by QR code. They are in memory only: after a restart the user begins again. */
export class Rendezvous {
  readonly #deps: RendezvousDeps;
  readonly #lifetime: number;
  readonly #maxSessions: number;
  /** Sessions by id, the earliest expiry first. */
  readonly #sessions = new Map<string, Session>();
  #writes = 0;

  /**
   * @param lifetime milliseconds
   * @param limit maximum number of sessions; beyond it, a new session replaces the oldest one of the address that has the
   * most sessions
   */
  constructor(deps: RendezvousDeps, lifetime: number, limit = maxSessions) {
    this.#deps = deps;
    this.#lifetime = lifetime;
    this.#maxSessions = limit;
  }

  /** Creates a session. @param ip address of the client @returns its id and its data */
  create(data: string, ip: string): { readonly id: string } & RendezvousData {
    const now = this.#deps.clock.now();
    this.#deleteExpired(now);
    if (this.#sessions.size >= this.#maxSessions) this.#deleteOldestOfBusiest();
    const id = randomString(this.#deps.randomness, 26);
    const session = {
      data,
      token: this.#newToken(data),
      changedAt: now,
      expiresAt: now + this.#lifetime,
    };
    this.#sessions.set(id, { ...session, previousToken: undefined, address: addressKey(ip) });
    return { id, ...session };
  }

  /** Returns the data of a session; `undefined` when it is unknown or has expired. */
  read(id: string): RendezvousData | undefined {
    const session = this.#sessions.get(id);
    return session && session.expiresAt > this.#deps.clock.now() ? session : undefined;
  }

  /**
   * Replaces the data, unless another device has replaced it since it was read. A repeated write succeeds without
   * effect.
   * @param token the token of the data that is replaced
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

  /** Deletes a session. @returns whether it was still stored, possibly after its expiry */
  delete(id: string): boolean {
    return this.#sessions.delete(id);
  }

  #deleteExpired(now: number): void {
    for (const [id, { expiresAt }] of this.#sessions) {
      if (expiresAt > now) return;
      this.#sessions.delete(id);
    }
  }

  /**
   * Deletes the oldest session of the address with the most sessions, so that an address that fills the table ends its own
   * sessions and not the logins of others.
   */
  #deleteOldestOfBusiest(): void {
    const byAddress = Map.groupBy(this.#sessions, ([, { address }]) => address);
    const busiest = [...byAddress.values()].reduce((one, other) => (other.length > one.length ? other : one));
    this.#sessions.delete(busiest[0]![0]);
  }

  #newToken(data: string): string {
    this.#writes += 1;
    return hash('sha256', `${this.#writes} ${data}`, 'base64url');
  }
}
