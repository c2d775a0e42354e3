import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, type Reader, writerFor } from '../../kernel/database/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import { invalidParam, MatrixError, notFound } from '../../protocol/index.ts';
import { sessionLifetime } from '../interactive-auth/session-bounds.ts';
import type { AccountTables } from '../tables.ts';
import {
  countUse,
  deleteToken,
  insertToken,
  lockToken,
  type RegistrationToken,
  readTokens,
  reservedToken,
  reserveToken,
  type TokenLimits,
  updateToken,
} from './token-store.ts';

export interface RegistrationTokensDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

/** A token to create; members that the caller omits have the defaults of the admin API. */
export interface NewRegistrationToken extends Partial<TokenLimits> {
  /** Generated when absent. */
  readonly token?: string | undefined;
  /** Characters of a generated token, 16 when absent. */
  readonly length?: number | undefined;
}

const tokenForm = /^[A-Za-z0-9._~-]{1,64}$/;
const tokenCharacters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-';

/** Characters of a generated token when the administrator sets no length. */
const defaultLength = 16;

/** Maximum characters of a token. */
const maxLength = 64;

/** Maximum number of random tokens that are tried until one is free: short tokens may be taken. */
const maxAttempts = 20;

/** Maximum value of `uses_allowed`: the column has 32 bits. */
const maxUses = 2 ** 31 - 1;

const invalidToken = () => new MatrixError(401, 'M_UNAUTHORIZED', 'Invalid registration token');

/**
 * Tokens that administrators give to the users who may register. A use is reserved when a session of interactive
 * authentication completes the stage of the token, counted when the account is created, and released when the session
 * ends. Source: client-server API, "Token-authenticated registration".
 */
export class RegistrationTokens {
  readonly #deps: RegistrationTokensDeps;

  constructor(deps: RegistrationTokensDeps) {
    this.#deps = deps;
  }

  /** Lists tokens. @param valid `true`: only tokens that a registration can begin with; `false`: only the other tokens */
  async list(valid?: boolean): Promise<RegistrationToken[]> {
    const now = this.#deps.clock.now();
    const tokens = await readTokens(this.#reader(), now - sessionLifetime);
    return valid === undefined ? tokens : tokens.filter((token) => isUsable(token, now) === valid);
  }

  /** Returns a token; `undefined` when it does not exist. */
  async find(token: string): Promise<RegistrationToken | undefined> {
    return this.#find(this.#reader(), token);
  }

  /** Whether a registration can begin with the token. */
  async isValid(token: string): Promise<boolean> {
    const found = await this.find(token);
    return found !== undefined && isUsable(found, this.#deps.clock.now());
  }

  /**
   * Creates a token. @throws MatrixError M_INVALID_PARAM for invalid members, for a token that exists, and when no
   * generated token is free
   */
  async create({
    token,
    length = defaultLength,
    ...limits
  }: NewRegistrationToken): Promise<RegistrationToken> {
    if (token !== undefined && !tokenForm.test(token)) {
      throw invalidParam(`'token' must have 1 to ${maxLength} of the characters A-Z a-z 0-9 . _ ~ -`);
    }
    if (!Number.isInteger(length) || length < 1 || length > maxLength) {
      throw invalidParam(`'length' must be an integer from 1 to ${maxLength}`);
    }
    this.#check(limits);
    const { uses_allowed = null, expiry_time = null } = limits;
    return this.#deps.database.transaction<AccountTables, RegistrationToken>(async (writer) => {
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const text = token ?? randomString(this.#deps.randomness, length, tokenCharacters);
        if (await insertToken(writer, text, { uses_allowed, expiry_time })) {
          return { token: text, uses_allowed, pending: 0, completed: 0, expiry_time };
        }
        if (token !== undefined) throw invalidParam(`The registration token ${token} exists already`);
      }
      throw invalidParam(`No registration token of ${length} characters is free`);
    });
  }

  /** Changes the given limits of a token. @throws MatrixError M_NOT_FOUND, M_INVALID_PARAM */
  async update(token: string, limits: Partial<TokenLimits>): Promise<RegistrationToken> {
    this.#check(limits);
    if (!tokenForm.test(token)) throw noSuchToken(token);
    const { uses_allowed, expiry_time } = limits;
    const change = {
      ...(uses_allowed !== undefined && { uses_allowed }),
      ...(expiry_time !== undefined && { expiry_time }),
    };
    return this.#deps.database.transaction<AccountTables, RegistrationToken>(async (writer) => {
      if (Object.keys(change).length > 0) await updateToken(writer, token, change);
      const found = await this.#find(writer, token);
      if (found === undefined) throw noSuchToken(token);
      return found;
    });
  }

  /** Deletes a token; registrations that have begun with it fail. @throws MatrixError M_NOT_FOUND */
  async remove(token: string): Promise<void> {
    if (!tokenForm.test(token)) throw noSuchToken(token);
    await this.#deps.database.transaction<AccountTables, void>(async (writer) => {
      if (!(await deleteToken(writer, token))) throw noSuchToken(token);
    });
  }

  /**
   * Reserves a use for a session, inside the caller's transaction.
   * @param idHash hash of the id of the session
   * @throws MatrixError M_UNAUTHORIZED when the token is invalid, or all its uses are completed or reserved
   */
  async reserveIn(anyWriter: AnyWriter, idHash: string, token: string): Promise<void> {
    const writer = writerFor<AccountTables>(anyWriter);
    if ((await reservedToken(writer, idHash)) === token) return;
    const found = await this.#find(writer, token);
    if (found === undefined || !isUsable(found, this.#deps.clock.now())) throw invalidToken();
    await lockToken(writer, token);
    await reserveToken(writer, idHash, token);
  }

  /**
   * Counts a use, inside the transaction that creates the account.
   * @param idHash hash of the id of the session that has reserved the use
   * @throws MatrixError M_UNAUTHORIZED when the token was deleted, has no use left, or has expired before a use was reserved
   */
  async useIn(anyWriter: AnyWriter, idHash: string, token: string): Promise<void> {
    const writer = writerFor<AccountTables>(anyWriter);
    const isReserved = (await reservedToken(writer, idHash)) === token;
    const found = await this.#find(writer, token);
    if (found === undefined) throw invalidToken();
    const { uses_allowed, completed } = found;
    const isAllowed = isReserved
      ? uses_allowed === null || completed < uses_allowed
      : isUsable(found, this.#deps.clock.now());
    if (!isAllowed) throw invalidToken();
    await reserveToken(writer, idHash, null);
    await countUse(writer, token);
  }

  async #find(reader: Reader<AccountTables>, token: string): Promise<RegistrationToken | undefined> {
    if (!tokenForm.test(token)) return undefined;
    const [found] = await readTokens(reader, this.#deps.clock.now() - sessionLifetime, token);
    return found;
  }

  #check({ uses_allowed, expiry_time }: Partial<TokenLimits>): void {
    if (!isCount(uses_allowed ?? 0) || (uses_allowed ?? 0) > maxUses) {
      throw invalidParam(`'uses_allowed' must be null or an integer from 0 to ${maxUses}`);
    }
    if (!isCount(expiry_time ?? 0))
      throw invalidParam("'expiry_time' must be null or an integer that is not negative");
    if ((expiry_time ?? Number.POSITIVE_INFINITY) < this.#deps.clock.now()) {
      throw invalidParam("'expiry_time' must not be in the past");
    }
  }

  #reader(): Reader<AccountTables> {
    return this.#deps.database.reader<AccountTables>();
  }
}

const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0;

const noSuchToken = (token: string) => notFound(`No such registration token: ${token}`);

function isUsable(
  { uses_allowed, pending, completed, expiry_time }: RegistrationToken,
  now: number,
): boolean {
  const hasUsesLeft = uses_allowed === null || pending + completed < uses_allowed;
  return hasUsesLeft && (expiry_time === null || expiry_time > now);
}
