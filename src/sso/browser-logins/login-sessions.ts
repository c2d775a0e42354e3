import { hash, timingSafeEqual } from 'node:crypto';
import { type Cache, type CacheRegistry, MiB, sizeOfJson } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import { addressKey } from '../../kernel/rate-limits/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { RemoteUser } from './identity-provider.ts';

/** A browser login that has begun. */
export interface LoginSession {
  readonly provider: string;
  /** Kind of the `LoginContinuation` that ends the login. */
  readonly kind: string;
  /** Data of the continuation. */
  readonly data: JsonObject;
  /** Whether the provider had to authenticate the user again. */
  readonly isForced?: boolean;
  /** Values that the provider needs when the browser comes back, for instance a nonce. */
  readonly secrets: JsonObject;
  /** A new user whom the provider has authenticated. */
  readonly newUser?: NewUser;
}

/** A new user, with the choices that were made on the pages so far. */
export interface NewUser {
  readonly remote: RemoteUser;
  readonly localpart?: string;
  /** The version of the terms that the user has accepted. */
  readonly accepted?: string;
}

/** The browser that begins a login. */
export interface LoginOwner {
  /** Value of the cookie. */
  readonly browser: string;
  readonly ip: string;
}

/** A login as it is kept in memory. */
interface StoredLogin {
  readonly session: LoginSession;
  readonly browserHash: string;
  readonly expiresAt: number;
}

/** Maximum number of logins in memory; the oldest are deleted. */
const maxSessions = 10_000;

/** Maximum number of logins of one client address; the oldest are deleted. */
const maxPerAddress = 50;

/** Default lifetime of a login in milliseconds. */
const defaultLifetime = 15 * 60_000;

/**
 * Stores begun browser logins in memory. Each is valid for a short time, once, and only in the browser that
 * began it. After a restart of the server, users begin again.
 */
export class LoginSessions {
  readonly #clock: Clock;
  readonly #randomness: Randomness;
  readonly #sessions: Cache<string, StoredLogin>;
  /** Client address to the ids of its logins, oldest first. */
  readonly #byAddress: Cache<string, readonly string[]>;

  constructor({
    caches,
    clock,
    randomness,
  }: {
    readonly caches: CacheRegistry;
    readonly clock: Clock;
    readonly randomness: Randomness;
  }) {
    this.#clock = clock;
    this.#randomness = randomness;
    // The size is fixed, because a smaller cache would delete logins of users who are typing their password.
    this.#sessions = caches.create('sso_logins', {
      size: maxSessions,
      maxBytes: 16 * MiB,
      sizeOf: ({ session }) => 300 + sizeOfJson(session as unknown as JsonObject),
      fixed: true,
    });
    this.#byAddress = caches.create('sso_logins_by_address', {
      size: maxSessions,
      maxBytes: 4 * MiB,
      sizeOf: (ids) => 80 * ids.length,
      fixed: true,
    });
  }

  /** Returns an id for a login that `add` stores. */
  newId(): string {
    return randomString(this.#randomness, 32);
  }

  /** Stores a login. @param lifetime milliseconds */
  add(id: string, { browser, ip }: LoginOwner, session: LoginSession, lifetime = defaultLifetime): void {
    const address = addressKey(ip);
    this.#sessions.set(id, {
      session,
      browserHash: digest(browser),
      expiresAt: this.#clock.now() + lifetime,
    });
    const ids = [...(this.#byAddress.get(address) ?? []), id].filter((known) => this.#sessions.has(known));
    for (const oldest of ids.splice(0, Math.max(0, ids.length - maxPerAddress)))
      this.#sessions.delete(oldest);
    this.#byAddress.set(address, ids);
  }

  /** Returns a login of a browser; `undefined` when it is unknown, expired or of another browser. */
  find(id: string, browser: string | undefined): LoginSession | undefined {
    const stored = this.#sessions.get(id);
    if (stored === undefined || browser === undefined || stored.expiresAt <= this.#clock.now())
      return undefined;
    const isSame = timingSafeEqual(Buffer.from(stored.browserHash), Buffer.from(digest(browser)));
    return isSame ? stored.session : undefined;
  }

  /**
   * Returns a login of a browser, and deletes it; `undefined` when it is unknown, expired or of another
   * browser.
   */
  take(id: string, browser: string | undefined): LoginSession | undefined {
    const session = this.find(id, browser);
    if (session !== undefined) this.#sessions.delete(id);
    return session;
  }
}

const digest = (browser: string) => hash('sha256', browser, 'base64url');
