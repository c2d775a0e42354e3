import type { DeviceCleanup } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { type AnyWriter, writerFor } from '../../kernel/database/index.ts';
import type { Randomness } from '../../kernel/randomness.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';
import { jsonFacts, type Publish, Stream, type StreamWriter } from '../../kernel/streams/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { AccountTables } from '../tables.ts';
import type { SessionCache } from './session-cache.ts';
import { checkRefreshToken, unknownToken } from './token-errors.ts';
import {
  deleteAccessToken,
  deleteExpiredTokens,
  deleteOlderPairs,
  deleteTokensIssuedBy,
  deleteTokensIssuedFor,
  deleteTokensOfDevices,
  deleteTokensOfUser,
  findAccessToken,
  findRefreshToken,
  insertAccessToken,
  insertRefreshToken,
  markConfirmed,
  type RefreshTokenRow,
  readConfirmedAt,
  readRefreshTokenIds,
  revokeReplaced,
} from './token-store.ts';
import { hashAccessToken, hashToken, newToken } from './tokens.ts';

/** Says that the sessions or the rights of a user have changed. Caches must drop their entries about this user. */
export interface SessionChange {
  readonly userId: string;
}

/** The options about the lifetimes of sessions and tokens. */
export type SessionOptions = Pick<
  AccountOptions,
  | 'session_lifetime'
  | 'refreshable_access_token_lifetime'
  | 'refresh_token_lifetime'
  | 'nonrefreshable_access_token_lifetime'
>;

export interface SessionsDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly cache: SessionCache;
  readonly options: SessionOptions;
  /** Signs the access tokens of guests. */
  readonly tokenKey: Uint8Array;
}

/** Tokens for a client. */
export interface IssuedTokens {
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  /** Milliseconds; `undefined` when the access token does not expire. */
  readonly expiresInMs: number | undefined;
}

/** The user and the device that a token belongs to. */
export interface TokenOwner {
  readonly userId: string;
  /** Absent for access tokens without a device. */
  readonly deviceId: string | undefined;
  /** Identifies an access token; absent for refresh tokens. */
  readonly tokenId: number | undefined;
}

/** A session to open. */
export interface NewSession {
  readonly userId: string;
  readonly deviceId: string;
  readonly isNewDevice: boolean;
  /** Whether the client can refresh access tokens. */
  readonly refreshable: boolean;
  readonly isGuest?: boolean;
}

/** Tokens to issue. */
interface TokenRequest {
  readonly userId: string;
  readonly deviceId: string;
  readonly refreshable: boolean;
  readonly isGuest: boolean;
  /** Milliseconds since the epoch, `Infinity` when the session does not end. */
  readonly sessionEnd: number;
  /** Id of the refresh token that was exchanged for these tokens. */
  readonly replaces: number | null;
  /** When the user authenticated, in milliseconds since the epoch; 0 for tokens that a refresh token was exchanged for. */
  readonly confirmedAt: number;
}

/**
 * Rate limit of exchanges of refresh tokens by one device; a client needs one exchange in each lifetime of an
 * access token.
 */
const exchangeLimit = { per_second: 0.1, burst_count: 20 };

/** Rate limit of refused refresh tokens from one client address. */
const refusalLimit = { per_second: 0.2, burst_count: 20 };

/**
 * Maximum number of unused pairs of tokens that were issued in exchange for one token and are valid at the same time.
 */
const maxUnusedPairs = 5;

const finiteOrNull = (time: number) => (Number.isFinite(time) ? time : null);

/** Issues, refreshes and revokes the access and refresh tokens of users and their devices. */
export class Sessions implements DeviceCleanup {
  readonly sessionStream = new Stream<SessionChange>('sessions', jsonFacts());
  readonly #deps: SessionsDeps;
  readonly #exchangeLimiter: RateLimiter;
  readonly #refusalLimiter: RateLimiter;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
    this.#exchangeLimiter = new RateLimiter(exchangeLimit, deps.clock);
    this.#refusalLimiter = new RateLimiter(refusalLimit, deps.clock);
    this.sessionStream.subscribe(({ userId }) => deps.cache.invalidate(userId));
  }

  /** Opens a session inside the caller's transaction and closes the previous session of the device. */
  async open(writer: AnyWriter, publish: Publish, session: NewSession): Promise<IssuedTokens> {
    const { userId, deviceId, isNewDevice, refreshable, isGuest = false } = session;
    if (!isNewDevice) await this.devicesRemoved(writer, publish, userId, [deviceId]);
    const now = this.#deps.clock.now();
    const sessionEnd = now + this.#deps.options.session_lifetime;
    return this.#issue(writer, {
      userId,
      deviceId,
      refreshable,
      isGuest,
      sessionEnd,
      replaces: null,
      confirmedAt: now,
    });
  }

  /**
   * Exchanges a refresh token. It can be exchanged again until one of the new tokens is used, because the client may
   * have missed the response. Then it is revoked together with all other tokens that were issued in exchange for it.
   * Source: client-server API, "Refreshing access tokens".
   * @param ip address of the client
   * @param inTransaction runs in the transaction of the exchange, and may refuse the exchange by an error
   * @throws MatrixError 401 M_UNKNOWN_TOKEN, M_USER_LOCKED; M_LIMIT_EXCEEDED; what `inTransaction` throws
   */
  async refresh(
    secret: string,
    ip: string,
    inTransaction?: (writer: AnyWriter, owner: TokenOwner) => Promise<void>,
  ): Promise<IssuedTokens> {
    const { database, streams, clock } = this.#deps;
    this.#refusalLimiter.check(ip);
    const hash = hashToken(secret);
    const found = this.#checkOrCount(await findRefreshToken(database.reader<AccountTables>(), hash), ip);
    this.#exchangeLimiter.take(`${found.user_id} ${found.device_id}`);
    return streams.write<AccountTables, IssuedTokens>(async (writer, publish) => {
      const token = checkRefreshToken(await findRefreshToken(writer, hash), clock.now());
      const pair = { userId: token.user_id, deviceId: token.device_id, refreshTokenId: token.id };
      await inTransaction?.(writer, { userId: token.user_id, deviceId: token.device_id, tokenId: undefined });
      if (token.replaces_id !== null) await this.#revokeReplaced(writer, publish, pair, token.replaces_id);
      await deleteOlderPairs(writer, pair, maxUnusedPairs - 1);
      return this.#issue(writer, {
        userId: token.user_id,
        deviceId: token.device_id,
        refreshable: true,
        isGuest: false,
        sessionEnd: token.session_expires_at ?? Number.POSITIVE_INFINITY,
        replaces: token.id,
        confirmedAt: 0,
      });
    });
  }

  /**
   * Revokes the replaced tokens when a refreshed access token is used for the first time.
   * @throws MatrixError 401 M_UNKNOWN_TOKEN when the token was revoked since it was read
   */
  async onFirstUse(userId: string, deviceId: string, tokenId: number): Promise<void> {
    await this.change(userId, async (writer, publish) => {
      const token = await readRefreshTokenIds(writerFor<AccountTables>(writer), tokenId);
      if (token === undefined) throw unknownToken('Unknown access token');
      const { refresh_token_id: refreshTokenId, replaces_refresh_token_id: replaced } = token;
      if (refreshTokenId === null || replaced === null) return;
      await this.#revokeReplaced(writer, publish, { userId, deviceId, refreshTokenId }, replaced);
    });
  }

  /**
   * Returns the owner of an access token or a refresh token, even when it has expired; `undefined` when the token is
   * unknown.
   */
  async ownerOf(secret: string): Promise<TokenOwner | undefined> {
    const { database, tokenKey } = this.#deps;
    const reader = database.reader<AccountTables>();
    const access = await findAccessToken(reader, hashAccessToken(secret, tokenKey));
    if (access !== undefined) {
      return { userId: access.user_id, deviceId: access.device_id ?? undefined, tokenId: access.id };
    }
    const refresh = await findRefreshToken(reader, hashToken(secret));
    return refresh && { userId: refresh.user_id, deviceId: refresh.device_id, tokenId: undefined };
  }

  /** Ends a session that has no device. */
  async close(userId: string, tokenId: number): Promise<void> {
    await this.change(userId, (writer) => deleteAccessToken(writerFor<AccountTables>(writer), tokenId));
  }

  /**
   * Ends all sessions of a user except the session of the token `keptTokenId`, inside the caller's transaction.
   * If the user is an administrator, the sessions that the user has opened to act as other users end, too. Sessions that
   * administrators have opened to act as this user stay.
   */
  async closeAllIn(writer: AnyWriter, publish: Publish, userId: string, keptTokenId?: number): Promise<void> {
    this.#deps.cache.beginChange(userId, this.#deps.clock.now());
    const tables = writerFor<AccountTables>(writer);
    await deleteTokensOfUser(tables, userId, keptTokenId);
    publish(this.sessionStream, { userId });
    for (const other of await deleteTokensIssuedBy(tables, userId)) {
      this.#deps.cache.beginChange(other, this.#deps.clock.now());
      publish(this.sessionStream, { userId: other });
    }
  }

  /** Ends the sessions that administrators have opened as the user, inside the caller's transaction. */
  async closeAllOfAdministratorsIn(writer: AnyWriter, publish: Publish, userId: string): Promise<void> {
    this.#deps.cache.beginChange(userId, this.#deps.clock.now());
    await deleteTokensIssuedFor(writerFor<AccountTables>(writer), userId);
    publish(this.sessionStream, { userId });
  }

  /**
   * Opens a session without a device, so that an administrator can act as a user. The user's list of devices does not
   * show it.
   * @param expiresAt milliseconds since the epoch; `undefined` when the session does not end
   * @returns the access token
   */
  async openAs(userId: string, administrator: string, expiresAt: number | undefined): Promise<string> {
    const { randomness, clock, database, tokenKey } = this.#deps;
    const { id, hash, secret } = newToken(randomness, 'hat', tokenKey);
    await database.transaction<AccountTables, void>((writer) =>
      insertAccessToken(writer, {
        id,
        hash,
        user_id: userId,
        device_id: null,
        refresh_token_id: null,
        replaces_refresh_token_id: null,
        created_at: clock.now(),
        expires_at: expiresAt ?? null,
        confirmed_at: 0,
        issued_by: administrator,
      }),
    );
    return secret;
  }

  async devicesRemoved(
    writer: AnyWriter,
    publish: Publish,
    userId: string,
    deviceIds: readonly string[],
  ): Promise<void> {
    this.#deps.cache.beginChange(userId, this.#deps.clock.now());
    await deleteTokensOfDevices(writerFor<AccountTables>(writer), userId, deviceIds);
    publish(this.sessionStream, { userId });
  }

  /** Runs a transaction that changes the user's sessions, and invalidates the user's cached sessions. */
  async change<T>(userId: string, work: (writer: AnyWriter, publish: Publish) => Promise<T>): Promise<T> {
    const { cache, clock, streams } = this.#deps;
    cache.beginChange(userId, clock.now());
    return streams.write<AccountTables, T>((writer, publish) => {
      publish(this.sessionStream, { userId });
      return work(writer, publish);
    });
  }

  /**
   * Returns the user id of the guest with this access token; `undefined` when the token is unknown or expired, or belongs
   * to a full user or a locked or deactivated guest.
   */
  async guestOf(token: string): Promise<string | undefined> {
    const row = await findAccessToken(
      this.#deps.database.reader<AccountTables>(),
      hashAccessToken(token, this.#deps.tokenKey),
    );
    if (row?.is_guest !== 1 || row.is_deactivated === 1 || row.is_locked === 1) return undefined;
    return row.expires_at !== null && row.expires_at <= this.#deps.clock.now() ? undefined : row.user_id;
  }

  /** Records that the user has authenticated again in this session. */
  async markConfirmed(tokenId: number): Promise<void> {
    const now = this.#deps.clock.now();
    await this.#deps.database.transaction<AccountTables, void>((writer) =>
      markConfirmed(writer, tokenId, now),
    );
  }

  /**
   * Returns the milliseconds since the user of these tokens last authenticated; since the epoch when that was before the
   * tokens were issued.
   */
  async sinceConfirmed(tokenId: number): Promise<number> {
    const confirmedAt = await readConfirmedAt(this.#deps.database.reader<AccountTables>(), tokenId);
    return this.#deps.clock.now() - (confirmedAt ?? 0);
  }

  /**
   * Deletes tokens that expired before `before` (milliseconds since the epoch). Until their deletion, the
   * responses to requests with these tokens have `soft_logout`.
   */
  async removeExpired(before: number): Promise<void> {
    await this.#deps.database.transaction<AccountTables, void>((writer) =>
      deleteExpiredTokens(writer, before),
    );
  }

  /** Counts refused refresh tokens by the address of the client. @throws as `checkRefreshToken` */
  #checkOrCount(token: RefreshTokenRow | undefined, ip: string): RefreshTokenRow {
    try {
      return checkRefreshToken(token, this.#deps.clock.now());
    } catch (error) {
      this.#refusalLimiter.take(ip);
      throw error;
    }
  }

  async #revokeReplaced(
    writer: AnyWriter,
    publish: Publish,
    used: { readonly userId: string; readonly deviceId: string; readonly refreshTokenId: number },
    replaced: number,
  ): Promise<void> {
    this.#deps.cache.beginChange(used.userId, this.#deps.clock.now());
    await revokeReplaced(writerFor<AccountTables>(writer), used, replaced);
    publish(this.sessionStream, { userId: used.userId });
  }

  async #issue(anyWriter: AnyWriter, issue: TokenRequest): Promise<IssuedTokens> {
    const { randomness, clock, options, tokenKey } = this.#deps;
    const writer = writerFor<AccountTables>(anyWriter);
    const created_at = clock.now();
    const owner = { user_id: issue.userId, device_id: issue.deviceId, created_at };
    const refresh = issue.refreshable ? newToken(randomness, 'hrt', tokenKey) : undefined;
    if (refresh) {
      await insertRefreshToken(writer, {
        ...owner,
        id: refresh.id,
        hash: refresh.hash,
        replaces_id: issue.replaces,
        expires_at: finiteOrNull(Math.min(created_at + options.refresh_token_lifetime, issue.sessionEnd)),
        session_expires_at: finiteOrNull(issue.sessionEnd),
      });
    }
    const access = newToken(randomness, issue.isGuest ? 'hgt' : 'hat', tokenKey);
    const lifetime = refresh
      ? options.refreshable_access_token_lifetime
      : options.nonrefreshable_access_token_lifetime;
    const expires_at = finiteOrNull(Math.min(created_at + lifetime, issue.sessionEnd));
    await insertAccessToken(writer, {
      ...owner,
      id: access.id,
      hash: access.hash,
      refresh_token_id: refresh?.id ?? null,
      replaces_refresh_token_id: issue.replaces,
      expires_at,
      confirmed_at: issue.confirmedAt,
    });
    const expiresInMs = expires_at === null ? undefined : expires_at - created_at;
    return { accessToken: access.secret, refreshToken: refresh?.secret, expiresInMs };
  }
}
