import { hash } from 'node:crypto';
import type { Login, OpenedSession, Sessions } from '../../accounts/index.ts';
import type { Devices } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, writerFor } from '../../kernel/database/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { ProviderSession, ProviderSessions } from '../../sso/index.ts';
import { type Client, type Clients, requireGrantType } from '../clients/clients.ts';
import { OAuthError } from '../oauth-error.ts';
import type { OAuthTables } from '../tables.ts';

export interface OAuthSessionsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly devices: Pick<Devices, 'remove'>;
  readonly sessions: Pick<Sessions, 'refresh' | 'ownerOf' | 'close'>;
  readonly login: Pick<Login, 'check' | 'open'>;
  readonly clients: Pick<Clients, 'markUsedIn'>;
  /** Absent where no identity provider is configured. */
  readonly providerSessions: Pick<ProviderSessions, 'recordIn'> | undefined;
}

/** A session that a user has granted to a client. */
export interface GrantedSession {
  readonly userId: string;
  readonly deviceId: string;
  readonly scope: string;
  /** The session at the identity provider that authenticated the user, which the provider may end; absent for a password. */
  readonly providerSession: ProviderSession | undefined;
}

/** Tokens for a client. */
export interface GrantedTokens extends Omit<OpenedSession, 'deviceId'> {
  readonly scope: string;
}

/** Maximum number of exchanged refresh tokens whose digests are stored for one session. */
const maxExchanged = 20;

/** Maximum characters of a token; longer ones are refused without hashing. */
const maxTokenLength = 255;

/** The login type that modules receive when a session is opened by OAuth 2.0. */
const loginType = 'm.login.oauth';

const hashOf = (token: string) => hash('sha256', token, 'base64url');

const invalidToken = () => new OAuthError('invalid_grant', 'The refresh token is invalid, used or expired');

/**
 * Opens, refreshes and ends the sessions of clients that log in by OAuth 2.0. Each session is a device, and
 * its tokens are ordinary access and refresh tokens (decisions 0133 and 0190).
 */
export class OAuthSessions {
  readonly #deps: OAuthSessionsDeps;

  constructor(deps: OAuthSessionsDeps) {
    this.#deps = deps;
  }

  /**
   * Opens a session for a client. The session has a refresh token if the client has registered the grant type
   * `refresh_token`.
   * @param ip address of the client
   * @param redeem marks the grant as used in the same transaction, and throws when it was used before
   * @throws OAuthError access_denied where modules or the limit of monthly active users refuse the login, and for a new
   * device whose id is refused
   */
  async open(
    client: Client,
    { userId, deviceId, scope, providerSession }: GrantedSession,
    ip: string,
    redeem: (writer: AnyWriter) => Promise<void>,
  ): Promise<GrantedTokens> {
    const row = { user_id: userId, device_id: deviceId, client_id: client.clientId, scope };
    const displayName = client.metadata.client_name ?? new URL(client.metadata.client_uri).host.slice(0, 100);
    const { clients, login, providerSessions } = this.#deps;
    const session = await refusedAsDenied(async () => {
      await login.check({ userId, type: loginType, deviceId, deviceName: displayName, ip });
      return login.open(
        { userId, type: loginType },
        { deviceId, displayName, refreshable: client.metadata.grant_types.includes('refresh_token') },
        async (writer) => {
          await redeem(writer);
          await clients.markUsedIn(writer, client);
        },
        async (writer) => {
          await writerFor<OAuthTables>(writer).insertInto('oauth_sessions').values(row).execute();
          if (providerSession !== undefined)
            await providerSessions?.recordIn(writer, { userId, deviceId }, providerSession);
        },
      );
    });
    return { ...session, scope };
  }

  /**
   * Exchanges a refresh token. When a token is sent again after its successor was used, the client or a thief
   * has an outdated copy, so the session ends. A client without the grant type `refresh_token` may also refresh sessions
   * that have a refresh token, because earlier versions gave every client a refresh token.
   * @param ip address of the client
   * @throws OAuthError invalid_grant, unauthorized_client; MatrixError M_LIMIT_EXCEEDED
   */
  async refresh(client: Client, token: string, ip: string): Promise<GrantedTokens> {
    if (token.length > maxTokenLength) throw invalidToken();
    let scope = '';
    try {
      const tokens = await this.#deps.sessions.refresh(
        token,
        ip,
        async (writer, { userId, deviceId = '' }) => {
          const session = await this.#find(writerFor<OAuthTables>(writer), userId, deviceId);
          if (session?.client_id !== client.clientId) throw invalidToken();
          scope = session.scope;
          await this.#recordExchange(writer, token, userId, deviceId);
          await this.#deps.clients.markUsedIn(writer, client);
        },
      );
      return { ...tokens, scope };
    } catch (error) {
      if (!(error instanceof MatrixError) || error.errcode === 'M_LIMIT_EXCEEDED') throw error;
      await this.#endStolen(token);
      requireGrantType(client, 'refresh_token');
      throw invalidToken();
    }
  }

  /**
   * Ends the session of an access token or refresh token, whichever client sends it (client-server API, "Token
   * revocation"). Unknown tokens are ignored.
   */
  async revoke(token: string): Promise<void> {
    if (token.length > maxTokenLength) return;
    const { devices, sessions } = this.#deps;
    const owner = await sessions.ownerOf(token);
    if (owner === undefined) return;
    if (owner.deviceId !== undefined) await devices.remove(owner.userId, [owner.deviceId]);
    else if (owner.tokenId !== undefined) await sessions.close(owner.userId, owner.tokenId);
  }

  /** Returns the client ids of the sessions of a user that were opened by OAuth 2.0, by device id. */
  async clientsOf(userId: string): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#deps.database
      .reader<OAuthTables>()
      .selectFrom('oauth_sessions')
      .select(['device_id', 'client_id'])
      .where('user_id', '=', userId)
      .execute();
    return new Map(rows.map((row) => [row.device_id, row.client_id]));
  }

  #find(
    reader: Pick<ReturnType<typeof writerFor<OAuthTables>>, 'selectFrom'>,
    userId: string,
    deviceId: string,
  ) {
    return reader
      .selectFrom('oauth_sessions')
      .select(['client_id', 'scope'])
      .where('user_id', '=', userId)
      .where('device_id', '=', deviceId)
      .executeTakeFirst();
  }

  async #recordExchange(
    anyWriter: AnyWriter,
    token: string,
    userId: string,
    deviceId: string,
  ): Promise<void> {
    const writer = writerFor<OAuthTables>(anyWriter);
    const row = { user_id: userId, device_id: deviceId, exchanged_at: this.#deps.clock.now() };
    await writer
      .insertInto('oauth_exchanged_tokens')
      .values({ ...row, hash: hashOf(token) })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    const exchangedTokens = await writer
      .selectFrom('oauth_exchanged_tokens')
      .select('hash')
      .where('user_id', '=', userId)
      .where('device_id', '=', deviceId)
      .orderBy('exchanged_at', 'desc')
      .execute();
    const surplus = exchangedTokens.slice(maxExchanged).map((one) => one.hash);
    if (surplus.length > 0) {
      await writer.deleteFrom('oauth_exchanged_tokens').where('hash', 'in', surplus).execute();
    }
  }

  /** Ends the session of a refresh token that was exchanged before and no longer exists. */
  async #endStolen(token: string): Promise<void> {
    const { database, devices, sessions } = this.#deps;
    const row = await database
      .reader<OAuthTables>()
      .selectFrom('oauth_exchanged_tokens')
      .select(['user_id', 'device_id'])
      .where('hash', '=', hashOf(token))
      .executeTakeFirst();
    // A token that still exists was refused for another reason: its account is locked, or it has expired.
    if (row === undefined || (await sessions.ownerOf(token)) !== undefined) return;
    await devices.remove(row.user_id, [row.device_id]);
  }
}

/** Opens a session. @throws OAuthError access_denied where `open` throws a MatrixError */
async function refusedAsDenied<T>(open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    throw error instanceof MatrixError ? new OAuthError('access_denied', error.message) : error;
  }
}
