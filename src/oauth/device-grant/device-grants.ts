import { hash } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, type Writer, writerFor } from '../../kernel/database/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import type { BrowserSession } from '../browser/browser-sessions.ts';
import { providerSessionColumn, readProviderSession } from '../browser/stored-provider-session.ts';
import { OAuthError } from '../oauth-error.ts';
import type { GrantedScope } from '../scopes.ts';
import type { OAuthTables } from '../tables.ts';

export interface DeviceGrantsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** The codes that a client without a browser receives. Source: RFC 8628, section 3.2. */
export interface DeviceCodes {
  readonly deviceCode: string;
  /** The code for the user, with a hyphen in its middle. */
  readonly userCode: string;
}

/** A login that waits for the decision of a user. */
export interface PendingGrant {
  readonly clientId: string;
  readonly deviceId: string;
  /** The code that the user types, without the hyphen. */
  readonly userCode: string;
}

/** Milliseconds for which the codes are valid. */
export const codeLifetime = 900_000;

/** Milliseconds for which a login is stored after its codes have expired, so that polls are answered with `expired_token`. */
const expiredStorage = 3_600_000;

/** Minimum seconds between two polls of a client for its tokens. */
export const pollInterval = 5;

/** Consonants that are hard to confuse and that form no words (RFC 8628, section 6.1). */
const userAlphabet = 'BCDFGHJKLMNPQRSTVWXZ';

/** Number of consonants in a user code: about 35 bits. */
const userCodeLength = 8;

/** Characters of a device code after its prefix: about 238 bits of entropy. */
const deviceCodeLength = 40;

/** Maximum number of stored logins. Above it, the logins that expire first are deleted. */
const maxGrants = 10_000;

const hashOf = (code: string) => hash('sha256', code, 'base64url');

/** Logins of clients without a browser. The user allows such a login in the browser of another device. Source: RFC 8628. */
export class DeviceGrants {
  readonly #deps: DeviceGrantsDeps;
  readonly #maxGrants: number;

  /** @param limit maximum number of stored logins */
  constructor(deps: DeviceGrantsDeps, limit = maxGrants) {
    this.#deps = deps;
    this.#maxGrants = limit;
  }

  /** Stores a new login, and deletes surplus logins and those that expired at least an hour ago. */
  async begin(clientId: string, scope: GrantedScope): Promise<DeviceCodes> {
    const { clock, database, randomness } = this.#deps;
    const deviceCode = `hdc_${randomString(randomness, deviceCodeLength)}`;
    const userCode = randomString(randomness, userCodeLength, userAlphabet);
    const now = clock.now();
    const row = {
      hash: hashOf(deviceCode),
      user_code: userCode,
      client_id: clientId,
      device_id: scope.deviceId,
      scope: scope.text,
      expires_at: now + codeLifetime,
      polled_at: 0,
      decision: 'pending' as const,
      user_id: null,
      provider_session: null,
    };
    await database.transaction<OAuthTables, void>(async (writer) => {
      await deleteExpiredAt(writer, now);
      await deleteSurplus(writer, this.#maxGrants - 1);
      await writer.insertInto('oauth_device_grants').values(row).execute();
    });
    return { deviceCode, userCode: `${userCode.slice(0, 4)}-${userCode.slice(4)}` };
  }

  /**
   * Returns the login that waits for the decision of a user.
   * @param userCode as a user enters it
   */
  async findPending(userCode: string): Promise<PendingGrant | undefined> {
    const code = userCode.toUpperCase().replace(/[\s-]/g, '');
    if (code.length !== userCodeLength) return undefined;
    const row = await this.#deps.database
      .reader<OAuthTables>()
      .selectFrom('oauth_device_grants')
      .select(['client_id', 'device_id'])
      .where('user_code', '=', code)
      .where('decision', '=', 'pending')
      .where('expires_at', '>', this.#deps.clock.now())
      .executeTakeFirst();
    return row && { clientId: row.client_id, deviceId: row.device_id, userCode: code };
  }

  /** Stores the decision of a user. @param userCode without the hyphen @returns whether the login was still pending */
  async decide(
    userCode: string,
    { userId, providerSession }: Pick<BrowserSession, 'userId' | 'providerSession'>,
    decision: 'approved' | 'denied',
  ): Promise<boolean> {
    const now = this.#deps.clock.now();
    return this.#deps.database.transaction<OAuthTables, boolean>(async (writer) => {
      const { numUpdatedRows } = await writer
        .updateTable('oauth_device_grants')
        .set({ decision, user_id: userId, provider_session: providerSessionColumn(providerSession) })
        .where('user_code', '=', userCode)
        .where('decision', '=', 'pending')
        .where('expires_at', '>', now)
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    });
  }

  /**
   * Returns the approved login of a device code, and `redeem`, which marks the login as completed.
   * @throws OAuthError authorization_pending, slow_down, access_denied, expired_token, invalid_grant
   */
  async check(deviceCode: string, clientId: string) {
    const now = this.#deps.clock.now();
    const row = await this.#deps.database
      .reader<OAuthTables>()
      .selectFrom('oauth_device_grants')
      .selectAll()
      .where('hash', '=', hashOf(deviceCode))
      .executeTakeFirst();
    if (row === undefined || row.client_id !== clientId || row.decision === 'redeemed') {
      throw new OAuthError('invalid_grant', 'The device code is invalid or used');
    }
    if (row.expires_at <= now) throw new OAuthError('expired_token', 'The device code has expired');
    if (row.decision === 'denied')
      throw new OAuthError('access_denied', 'The user has not allowed the login');
    if (row.decision === 'pending' || row.user_id === null) {
      await this.#poll(row.hash, row.polled_at, now);
      throw new OAuthError('authorization_pending', 'The user has not decided yet');
    }
    return {
      userId: row.user_id,
      deviceId: row.device_id,
      scope: row.scope,
      providerSession: readProviderSession(row.provider_session),
      redeem: (writer: AnyWriter) => redeem(writerFor<OAuthTables>(writer), row.hash),
    };
  }

  /** Deletes logins an hour after they have expired. */
  async deleteExpired(): Promise<void> {
    const now = this.#deps.clock.now();
    await this.#deps.database.transaction<OAuthTables, void>((writer) => deleteExpiredAt(writer, now));
  }

  /** Records a poll of a client. @throws OAuthError slow_down when the client polls too often */
  async #poll(hash: string, polledAt: number, now: number): Promise<void> {
    // One second of tolerance for clocks and the network.
    if (now - polledAt < (pollInterval - 1) * 1_000)
      throw new OAuthError('slow_down', `Poll at most every ${pollInterval} seconds`);
    await this.#deps.database.transaction<OAuthTables, void>(async (writer) => {
      await writer
        .updateTable('oauth_device_grants')
        .set({ polled_at: now })
        .where('hash', '=', hash)
        .execute();
    });
  }
}

/** Marks a login as completed. @throws OAuthError invalid_grant when another request has done so */
async function redeem(writer: Writer<OAuthTables>, hash: string): Promise<void> {
  const { numUpdatedRows } = await writer
    .updateTable('oauth_device_grants')
    .set({ decision: 'redeemed' })
    .where('hash', '=', hash)
    .where('decision', '=', 'approved')
    .executeTakeFirst();
  if (numUpdatedRows === 0n) throw new OAuthError('invalid_grant', 'The device code is used');
}

/** Deletes the logins whose codes expired at least an hour before `now`. */
async function deleteExpiredAt(writer: Writer<OAuthTables>, now: number): Promise<void> {
  await writer
    .deleteFrom('oauth_device_grants')
    .where('expires_at', '<=', now - expiredStorage)
    .execute();
}

async function deleteSurplus(writer: Writer<OAuthTables>, limit: number): Promise<void> {
  const { count } = await writer
    .selectFrom('oauth_device_grants')
    .select((query) => query.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  const surplus = Number(count) - limit;
  if (surplus <= 0) return;
  const rows = writer.selectFrom('oauth_device_grants').select('hash').orderBy('expires_at').limit(surplus);
  const hashes = (await rows.execute()).map((row) => row.hash);
  await writer.deleteFrom('oauth_device_grants').where('hash', 'in', hashes).execute();
}
