import { hash, timingSafeEqual } from 'node:crypto';
import type { Devices } from '../../devices/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, writerFor } from '../../kernel/database/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import type { ProviderSession } from '../../sso/index.ts';
import { providerSessionColumn, readProviderSession } from '../browser/stored-provider-session.ts';
import { OAuthError } from '../oauth-error.ts';
import type { GrantedScope } from '../scopes.ts';
import type { OAuthTables } from '../tables.ts';

export interface AuthorizationCodesDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly devices: Pick<Devices, 'remove'>;
}

/** A login that a user has allowed. A code is issued for it. */
export interface CodeGrant {
  readonly clientId: string;
  readonly userId: string;
  readonly scope: GrantedScope;
  readonly redirectUri: string;
  readonly codeChallenge: string;
  readonly providerSession: ProviderSession | undefined;
}

/** The parameters with which a client exchanges a code. */
export interface CodeExchange {
  readonly code: string;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly codeVerifier: string;
}

/** A code that may be exchanged. */
export interface RedeemableCode {
  readonly userId: string;
  readonly deviceId: string;
  readonly scope: string;
  readonly providerSession: ProviderSession | undefined;
  /**
   * Marks the code as exchanged, inside the transaction that issues the tokens.
   * @throws OAuthError invalid_grant when another request has exchanged it
   */
  readonly redeem: (writer: AnyWriter) => Promise<void>;
}

/** Milliseconds for which a code is valid: clients exchange it at once. */
const lifetime = 300_000;

/** Maximum number of codes of one user; older ones are deleted. */
const maxPerUser = 10;

/** Characters of a code after its prefix: about 238 bits of entropy. */
const codeLength = 40;

const hashOf = (code: string) => hash('sha256', code, 'base64url');

const invalidCode = () => new OAuthError('invalid_grant', 'The code is invalid, used or expired');

/**
 * Authorization codes. A client can exchange a code for tokens only once. The digests of codes are stored, not the
 * codes.
 */
export class AuthorizationCodes {
  readonly #deps: AuthorizationCodesDeps;

  constructor(deps: AuthorizationCodesDeps) {
    this.#deps = deps;
  }

  /** Issues a code. @returns the code */
  async issue(grant: CodeGrant): Promise<string> {
    const { clientId, userId, scope, redirectUri, codeChallenge, providerSession } = grant;
    const { clock, database, randomness } = this.#deps;
    const code = `hac_${randomString(randomness, codeLength)}`;
    const row = {
      hash: hashOf(code),
      client_id: clientId,
      user_id: userId,
      device_id: scope.deviceId,
      scope: scope.text,
      redirect_uri: redirectUri,
      code_challenge: codeChallenge,
      expires_at: clock.now() + lifetime,
      redeemed: 0,
      provider_session: providerSessionColumn(providerSession),
    };
    await database.transaction<OAuthTables, void>(async (writer) => {
      const codes = await writer
        .selectFrom('oauth_codes')
        .select('hash')
        .where('user_id', '=', userId)
        .orderBy('expires_at', 'desc')
        .execute();
      const surplus = codes.slice(maxPerUser - 1).map((one) => one.hash);
      if (surplus.length > 0) await writer.deleteFrom('oauth_codes').where('hash', 'in', surplus).execute();
      await writer.insertInto('oauth_codes').values(row).execute();
    });
    return code;
  }

  /**
   * Checks a code. A code that is sent again after its exchange may have been stolen, so the session that it
   * opened ends (RFC 6749, section 4.1.2).
   * @throws OAuthError invalid_grant
   */
  async check({ code, clientId, redirectUri, codeVerifier }: CodeExchange): Promise<RedeemableCode> {
    const { clock, database, devices } = this.#deps;
    const row = await database
      .reader<OAuthTables>()
      .selectFrom('oauth_codes')
      .selectAll()
      .where('hash', '=', hashOf(code))
      .executeTakeFirst();
    if (row === undefined || row.expires_at <= clock.now()) throw invalidCode();
    if (row.redeemed === 1) {
      await devices.remove(row.user_id, [row.device_id]);
      throw invalidCode();
    }
    if (row.client_id !== clientId) throw invalidCode();
    if (row.redirect_uri !== redirectUri) {
      throw new OAuthError('invalid_grant', 'redirect_uri is not that of the authorization request');
    }
    if (!isVerifierOf(row.code_challenge, codeVerifier)) {
      throw new OAuthError('invalid_grant', 'code_verifier does not match code_challenge');
    }
    const redeem = async (writer: AnyWriter) => {
      const { numUpdatedRows } = await writerFor<OAuthTables>(writer)
        .updateTable('oauth_codes')
        .set({ redeemed: 1 })
        .where('hash', '=', row.hash)
        .where('redeemed', '=', 0)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) throw invalidCode();
    };
    return {
      userId: row.user_id,
      deviceId: row.device_id,
      scope: row.scope,
      providerSession: readProviderSession(row.provider_session),
      redeem,
    };
  }

  /** Deletes codes that have expired. */
  async deleteExpired(): Promise<void> {
    await this.#deps.database.transaction<OAuthTables, void>(async (writer) => {
      await writer.deleteFrom('oauth_codes').where('expires_at', '<=', this.#deps.clock.now()).execute();
    });
  }
}

/** Whether a code verifier belongs to a challenge (RFC 7636, section 4.6). */
function isVerifierOf(challenge: string, verifier: string): boolean {
  if (!/^[\w.~-]{43,128}$/.test(verifier)) return false;
  const [expected, given] = [Buffer.from(challenge), Buffer.from(hash('sha256', verifier, 'base64url'))];
  return expected.length === given.length && timingSafeEqual(expected, given);
}
