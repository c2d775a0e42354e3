import { hash } from 'node:crypto';
import type { Accounts } from '../../accounts/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { clearCookie, setCookie } from '../../kernel/http/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import type { ProviderLogout, ProviderSession } from '../../sso/index.ts';
import type { OAuthTables } from '../tables.ts';
import { providerSessionColumn, readProviderSession } from './stored-provider-session.ts';

/** The parts of a request that identify a browser. */
export interface BrowserRequest {
  readonly isSecure: boolean;
  readonly cookies: Readonly<Record<string, string | undefined>>;
}

/** A browser in which a user is signed in. */
export interface BrowserSession {
  readonly userId: string;
  /**
   * When the user last proved their identity with certainty, for instance with a password, in milliseconds
   * since the epoch; 0 when that is not known.
   */
  readonly authenticatedAt: number;
  /** A value that forms contain, so that other sites cannot send them. */
  readonly formToken: string;
  /** The session at the identity provider through which the user signed in. */
  readonly providerSession: ProviderSession | undefined;
}

/** A sign-in of a user. */
export interface NewBrowserSession {
  readonly userId: string;
  readonly providerSession: ProviderSession | undefined;
  /**
   * Whether the user has just been authenticated. An identity provider may send back a user who is signed in there without
   * asking for anything.
   */
  readonly isFresh: boolean;
}

export interface BrowserSessionsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly accounts: Pick<Accounts, 'getUser'>;
}

/** Milliseconds after which a user signs in again, however active the browser is. */
const lifetime = 24 * 3_600_000;

/** Maximum number of browsers of one user; the oldest session ends first. */
const maxPerUser = 20;

/** Number of sessions that one query reads when a session at an identity provider has ended. */
const pageSize = 500;

/** Characters of the value of a cookie: about 238 bits of entropy. */
const secretLength = 40;

/** Name of the cookie of a browser session. */
const sessionCookie = 'hearth';

/** Name of the cookie that marks a browser before its user signs in. */
const signInCookie = 'hearth_sign_in';

const hashOf = (secret: string) => hash('sha256', secret, 'base64url');

/** Returns the value that the forms of a browser contain. It does not reveal the value of the cookie. */
export const formTokenOf = (secret: string) => hash('sha256', `form ${secret}`, 'base64url');

/**
 * Returns the name of a cookie. Browsers set a cookie with the prefix `__Host-` only for the host itself and
 * over TLS.
 */
const cookieName = ({ isSecure }: BrowserRequest, name: string) => (isSecure ? `__Host-${name}` : name);

/** Keeps users signed in to the pages of this server, by a cookie that scripts and other sites cannot use. */
export class BrowserSessions {
  readonly #deps: BrowserSessionsDeps;

  constructor(deps: BrowserSessionsDeps) {
    this.#deps = deps;
  }

  /** Signs a user in. @returns the header that sets the cookie */
  async open(
    request: BrowserRequest,
    { userId, providerSession, isFresh }: NewBrowserSession,
  ): Promise<string> {
    const { clock, database, randomness } = this.#deps;
    const secret = randomString(randomness, secretLength);
    const now = clock.now();
    const row = {
      hash: hashOf(secret),
      user_id: userId,
      authenticated_at: isFresh ? now : 0,
      expires_at: now + lifetime,
      provider_session: providerSessionColumn(providerSession),
    };
    const replaced = request.cookies[cookieName(request, sessionCookie)];
    await database.transaction<OAuthTables, void>(async (writer) => {
      if (replaced !== undefined) {
        await writer.deleteFrom('browser_sessions').where('hash', '=', hashOf(replaced)).execute();
      }
      const sessions = await writer
        .selectFrom('browser_sessions')
        .select('hash')
        .where('user_id', '=', userId)
        .orderBy('expires_at', 'desc')
        .execute();
      const surplus = sessions.slice(maxPerUser - 1).map((session) => session.hash);
      if (surplus.length > 0)
        await writer.deleteFrom('browser_sessions').where('hash', 'in', surplus).execute();
      await writer.insertInto('browser_sessions').values(row).execute();
    });
    return setCookie(request, cookieName(request, sessionCookie), secret, { maxAge: lifetime / 1_000 });
  }

  /** Returns the session of a browser; `undefined` when it has none, or its account is locked or deactivated. */
  async find(request: BrowserRequest): Promise<BrowserSession | undefined> {
    const secret = request.cookies[cookieName(request, sessionCookie)];
    if (secret?.length !== secretLength) return undefined;
    const row = await this.#deps.database
      .reader<OAuthTables>()
      .selectFrom('browser_sessions')
      .select(['user_id', 'authenticated_at', 'provider_session'])
      .where('hash', '=', hashOf(secret))
      .where('expires_at', '>', this.#deps.clock.now())
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const user = await this.#deps.accounts.getUser(row.user_id);
    if (user === undefined || user.isDeactivated || user.isLocked) return undefined;
    return {
      userId: row.user_id,
      authenticatedAt: row.authenticated_at,
      formToken: formTokenOf(secret),
      providerSession: readProviderSession(row.provider_session),
    };
  }

  /** Signs a user out of a browser. @returns the header that deletes the cookie */
  async close(request: BrowserRequest): Promise<string> {
    const name = cookieName(request, sessionCookie);
    const secret = request.cookies[name];
    if (secret !== undefined) {
      await this.#deps.database.transaction<OAuthTables, void>(async (writer) => {
        await writer.deleteFrom('browser_sessions').where('hash', '=', hashOf(secret)).execute();
      });
    }
    return clearCookie(request, name);
  }

  /** Signs users out of the browsers whose session at an identity provider has ended. */
  async endByLogout(logout: ProviderLogout): Promise<void> {
    const { database } = this.#deps;
    for (let after = ''; ; ) {
      const page = await database
        .reader<OAuthTables>()
        .selectFrom('browser_sessions')
        .select(['hash', 'provider_session'])
        .where('provider_session', 'is not', null)
        .where('hash', '>', after)
        .orderBy('hash')
        .limit(pageSize)
        .execute();
      const ended = page
        .filter(({ provider_session: stored }) => endsSession(logout, readProviderSession(stored)))
        .map(({ hash }) => hash);
      if (ended.length > 0)
        await database.transaction<OAuthTables, void>(async (writer) => {
          await writer.deleteFrom('browser_sessions').where('hash', 'in', ended).execute();
        });
      if (page.length < pageSize) return;
      after = page.at(-1)!.hash;
    }
  }

  /** Deletes sessions that have ended. */
  async deleteExpired(): Promise<void> {
    await this.#deps.database.transaction<OAuthTables, void>(async (writer) => {
      await writer.deleteFrom('browser_sessions').where('expires_at', '<=', this.#deps.clock.now()).execute();
    });
  }
}

/**
 * Whether a logout at an identity provider ends `session`, the session at an identity provider with which a user signed
 * in.
 */
const endsSession = (
  { provider, sessionId, externalId }: ProviderLogout,
  session: ProviderSession | undefined,
) =>
  session?.provider === provider &&
  (sessionId === undefined || session.sessionId === sessionId) &&
  (externalId === undefined || session.externalId === externalId);

/**
 * Marks a browser before its user signs in, so that another site cannot send the form to sign in. Otherwise an attacker
 * could sign the user in to the attacker's account (login CSRF).
 */
export class SignInMarks {
  readonly #randomness: Randomness;

  constructor(randomness: Randomness) {
    this.#randomness = randomness;
  }

  /** @returns the value for the form, and the header that sets the cookie if the browser has none */
  mark(request: BrowserRequest): { readonly formToken: string; readonly cookie: string | undefined } {
    const name = cookieName(request, signInCookie);
    const cookie = request.cookies[name];
    if (cookie !== undefined && cookie.length === secretLength) {
      return { formToken: formTokenOf(cookie), cookie: undefined };
    }
    const secret = randomString(this.#randomness, secretLength);
    return { formToken: formTokenOf(secret), cookie: setCookie(request, name, secret) };
  }

  /** Whether a form was made for this browser. */
  matches(request: BrowserRequest, formToken: string): boolean {
    const secret = request.cookies[cookieName(request, signInCookie)];
    return secret !== undefined && formToken !== '' && formTokenOf(secret) === formToken;
  }
}
