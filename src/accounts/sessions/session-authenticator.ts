import type { LastSeen } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { AuthenticationContext, Authenticator, Requester } from '../../kernel/http/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { AccountTables } from '../tables.ts';
import { readUser } from '../user-store.ts';
import type { Session, SessionCache } from './session-cache.ts';
import type { Sessions } from './sessions.ts';
import { expiredToken, lockedAccount, unknownToken } from './token-errors.ts';
import type { TokenIntrospection } from './token-introspection.ts';
import { type AccessTokenRow, findAccessToken } from './token-store.ts';
import { hashAccessToken, idOfForeignToken } from './tokens.ts';

export interface SessionAuthenticatorDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly cache: SessionCache;
  readonly sessions: Sessions;
  readonly lastSeen: LastSeen;
  /** Signs the access tokens of guests. */
  readonly tokenKey: Uint8Array;
  /** Whether a user has a device. */
  readonly hasDevice: (userId: string, deviceId: string) => Promise<boolean>;
  /** Checks access tokens; absent unless an authentication service issues them. */
  readonly introspection?: TokenIntrospection | undefined;
  /**
   * Makes the error that refuses requests while the server is disabled (`hs_disabled`); absent otherwise. Administrators
   * are exempt, and all users may log out.
   */
  readonly disabledError?: (() => MatrixError) | undefined;
}

/** Maximum length of an access token; longer ones are refused without hashing. */
const maxTokenLength = 255;

/** Authenticates requests by their access tokens. Tokens in the cache need no query. */
export class SessionAuthenticator implements Authenticator {
  readonly #deps: SessionAuthenticatorDeps;

  /** Whether requests of an administrator who acts as a user count as activity of the user. */
  readonly #tracksPuppets: boolean;
  /** Running introspections, by access token. */
  readonly #introspecting = new LoadOnce<string, Session>();

  constructor(deps: SessionAuthenticatorDeps, options: Pick<AccountOptions, 'track_puppeted_user_ips'>) {
    this.#deps = deps;
    this.#tracksPuppets = options.track_puppeted_user_ips;
  }

  /**
   * Returns the user and the device of an access token, and records their activity.
   * @throws MatrixError M_UNKNOWN_TOKEN, with `soft_logout` for an expired token; M_USER_LOCKED,
   * M_RESOURCE_LIMIT_EXCEEDED; what `#introspect` throws
   */
  authenticate(token: string, context: AuthenticationContext): Requester | Promise<Requester> {
    if (token.length > maxTokenLength) throw unknownToken('Unknown access token');
    const { cache, clock, introspection } = this.#deps;
    const session = cache.get(token);
    if (session !== undefined && (session.usableUntil ?? Number.POSITIVE_INFINITY) > clock.now()) {
      return this.#admit(session, context);
    }
    if (introspection === undefined) return this.#load(token, context);
    const found = this.#introspecting.run(token, () => this.#introspect(introspection, token, context.ip));
    return found.then((introspected) => this.#admit(introspected, context));
  }

  #admit(session: Session, context: AuthenticationContext): Requester {
    const { clock, lastSeen, disabledError } = this.#deps;
    const hasExpired = session.expiresAt !== undefined && session.expiresAt <= clock.now();
    if (hasExpired && !context.allowExpired) {
      throw expiredToken('The access token has expired');
    }
    if (session.isLocked && !context.allowLocked) throw lockedAccount();
    const { userId, deviceId, isAdmin } = session.requester;
    if (disabledError && !isAdmin && !context.allowLocked) throw disabledError();
    const { ip, userAgent } = context;
    const { administrator } = session;
    if (administrator !== undefined) lastSeen.record({ userId: administrator, deviceId, ip, userAgent });
    if (administrator === undefined || this.#tracksPuppets)
      lastSeen.record({ userId, deviceId, ip, userAgent });
    return session.requester;
  }

  /**
   * Finds the session of a token of the authentication service; concurrent requests with one token share an
   * introspection.
   * @throws MatrixError M_UNKNOWN_TOKEN, M_LIMIT_EXCEEDED; 500 for a user without an account on this server, 503 when the service
   * does not answer
   */
  async #introspect(introspection: TokenIntrospection, token: string, ip: string): Promise<Session> {
    const { cache, clock, database } = this.#deps;
    const { generation } = cache;
    const found = await introspection.introspect(token, ip);
    if (found === undefined) throw unknownToken('Unknown access token');
    const { userId, deviceId, isAdmin, usableUntil } = found;
    const user = await readUser(database.reader<AccountTables>(), userId);
    // The service creates its users on this server, so a missing user is an error of the service or of this server.
    // Clients must not log out because of this error.
    if (user === undefined)
      throw new MatrixError(500, 'M_UNKNOWN', 'The user of the access token does not exist on this server');
    if (user.isDeactivated) throw unknownToken('Unknown access token');
    // The service deletes the device when a session ends, while this server may still cache its answer about
    // the token.
    if (deviceId !== undefined && !(await this.#deps.hasDevice(userId, deviceId))) {
      throw unknownToken('The session has ended');
    }
    const { isSuspended, isShadowBanned } = user;
    const session: Session = {
      requester: Object.freeze({
        userId,
        deviceId,
        isGuest: false,
        isAdmin,
        isSuspended,
        isShadowBanned,
        appservice: undefined,
        tokenId: idOfForeignToken(token),
      }),
      isLocked: user.isLocked,
      expiresAt: undefined,
      usableUntil,
    };
    cache.put(token, session, generation, clock.now());
    return session;
  }

  async #load(token: string, context: AuthenticationContext): Promise<Requester> {
    const { cache, clock, database, sessions, tokenKey } = this.#deps;
    const { generation } = cache;
    const row = await findAccessToken(database.reader<AccountTables>(), hashAccessToken(token, tokenKey));
    if (row === undefined || row.is_deactivated === 1) throw unknownToken('Unknown access token');
    const session = toSession(row);
    const requester = this.#admit(session, context);
    if (row.replaces_refresh_token_id !== null && row.device_id !== null) {
      await sessions.onFirstUse(row.user_id, row.device_id, row.id);
    } else {
      cache.put(token, session, generation, clock.now());
    }
    return requester;
  }
}

function toSession(row: AccessTokenRow): Session {
  return {
    requester: Object.freeze({
      userId: row.user_id,
      deviceId: row.device_id ?? undefined,
      isGuest: row.is_guest === 1,
      isAdmin: row.is_admin === 1,
      isSuspended: row.is_suspended === 1,
      isShadowBanned: row.is_shadow_banned === 1,
      appservice: undefined,
      ...(row.issued_by !== null && { administrator: row.issued_by }),
      tokenId: row.id,
    }),
    isLocked: row.is_locked === 1,
    administrator: row.issued_by ?? undefined,
    expiresAt: row.expires_at ?? undefined,
  };
}
