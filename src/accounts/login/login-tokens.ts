import { createHmac } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import { forbidden, type JsonObject, parseJson } from '../../protocol/index.ts';
import type { AccountTables } from '../tables.ts';

export interface LoginTokensDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  /** Signs the tokens: tokens that were issued with another key are refused. */
  readonly tokenKey: Uint8Array;
}

/** Characters of a token: about 238 bits of entropy. */
const tokenLength = 40;

/** The user for whom a login token was issued. */
export interface RedeemedToken {
  readonly userId: string;
  /** The details that `issue` has stored. */
  readonly details: JsonObject | undefined;
}

/** Maximum characters of a token; longer ones are refused without hashing. */
const maxTokenLength = 255;

/**
 * Issues tokens that log a user in once, within a short time, for `m.login.token`. Only their MACs are stored.
 * Source: client-server API, "Token-based login".
 */
export class LoginTokens {
  readonly #deps: LoginTokensDeps;

  constructor(deps: LoginTokensDeps) {
    this.#deps = deps;
  }

  /**
   * Issues a token.
   * @param lifetime milliseconds for which the token is valid
   * @param details stored with the token; `redeem` returns them
   * @returns the token
   */
  async issue(userId: string, lifetime: number, details?: JsonObject): Promise<string> {
    const { clock, database, randomness } = this.#deps;
    const token = `hlt_${randomString(randomness, tokenLength)}`;
    const now = clock.now();
    const row = {
      hash: this.#mac(token),
      user_id: userId,
      expires_at: now + lifetime,
      details: details === undefined ? null : JSON.stringify(details),
    };
    await database.transaction<AccountTables, void>(async (writer) => {
      await writer.deleteFrom('login_tokens').where('expires_at', '<=', now).execute();
      await writer.insertInto('login_tokens').values(row).execute();
    });
    return token;
  }

  /**
   * Returns the user of a token, and invalidates the token.
   * @throws MatrixError M_FORBIDDEN when the token is unknown, used or expired
   */
  async redeem(token: string): Promise<RedeemedToken> {
    const { clock, database } = this.#deps;
    if (token.length > maxTokenLength) throw invalidToken();
    const hash = this.#mac(token);
    return database.transaction<AccountTables, RedeemedToken>(async (writer) => {
      const tokens = writer.selectFrom('login_tokens').select(['user_id', 'expires_at', 'details']);
      const row = await tokens.where('hash', '=', hash).executeTakeFirst();
      const { numDeletedRows } = await writer
        .deleteFrom('login_tokens')
        .where('hash', '=', hash)
        .executeTakeFirst();
      if (row === undefined || numDeletedRows === 0n || row.expires_at <= clock.now()) throw invalidToken();
      const details = row.details === null ? undefined : (parseJson(row.details) as JsonObject);
      return { userId: row.user_id, details };
    });
  }

  #mac(token: string): string {
    return createHmac('sha256', this.#deps.tokenKey).update(token).digest('base64url');
  }
}

const invalidToken = () => forbidden('The login token is invalid, used or expired');
