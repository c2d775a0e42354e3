import type { Database } from '../../kernel/database/index.ts';
import { forbidden, isJsonObject, type JsonObject, MatrixError, missingParam } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import { ProofOfAnotherUser, type Stage, type StageContext } from '../interactive-auth/stage.ts';
import type { AccountLimits } from '../limits.ts';
import { lockedAccount } from '../sessions/token-errors.ts';
import type { AccountTables } from '../tables.ts';
import { readUserForLogin, type User } from '../user-store.ts';
import { userIdFromInput } from '../usernames.ts';
import type { PasswordHasher } from './password-hasher.ts';

export interface PasswordLoginDeps {
  readonly database: Database;
  readonly hasher: PasswordHasher;
  readonly limits: AccountLimits['login'];
}

const wrongPassword = () => forbidden('Wrong user name or password');

/** `m.login.password`, both as a login type and as a stage of interactive authentication. */
export class PasswordLogin implements Stage {
  readonly type = 'm.login.password';
  readonly #deps: PasswordLoginDeps;
  readonly #options: Pick<AccountOptions, 'server_name' | 'password_config'>;

  constructor(deps: PasswordLoginDeps, options: Pick<AccountOptions, 'server_name' | 'password_config'>) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Whether it can be used to log in; with `only_for_reauth` it cannot. */
  get opensSessions(): boolean {
    const { enabled, localdb_enabled } = this.#options.password_config;
    return enabled === true && localdb_enabled;
  }

  /** Whether a logged-in user can confirm actions with it. */
  get confirms(): boolean {
    const { enabled, localdb_enabled } = this.#options.password_config;
    return enabled !== false && localdb_enabled;
  }

  /**
   * Authenticates the user by the password in a login request.
   * @throws MatrixError M_FORBIDDEN for a wrong name or password, M_USER_DEACTIVATED, M_USER_LOCKED,
   * M_LIMIT_EXCEEDED
   */
  async login(body: JsonObject): Promise<User> {
    const password = body['password'];
    if (typeof password !== 'string') throw missingParam("'password' is missing");
    const name = nameIn(body);
    if (name !== undefined) this.#deps.limits.account.take(this.#limitKey(name));
    return this.#check(name, password);
  }

  /** Checks the password of the logged-in user, as a stage. */
  async verify(auth: JsonObject, { requester }: StageContext): Promise<boolean> {
    const password = auth['password'];
    if (typeof password !== 'string') throw missingParam("'password' is missing");
    if (requester === undefined) throw wrongPassword();
    const claimedName =
      (auth['identifier'] ?? auth['user'] ?? undefined) === undefined ? undefined : nameIn(auth);
    const user = await this.#check(claimedName ?? requester.userId, password);
    if (user.userId !== requester.userId) throw new ProofOfAnotherUser();
    return true;
  }

  async #check(name: string | undefined, password: string): Promise<User> {
    const { database, hasher, limits } = this.#deps;
    const userId = name === undefined ? undefined : userIdFromInput(name, this.#options.server_name);
    const account = name === undefined ? undefined : this.#limitKey(name);
    if (account !== undefined) limits.failedAttempts.check(account);
    const found =
      userId && !userId.includes('\0')
        ? await readUserForLogin(database.reader<AccountTables>(), userId)
        : undefined;
    const matches = await hasher.verify(password, found?.passwordHash);
    if (!found || !matches) {
      if (account !== undefined) limits.failedAttempts.take(account);
      throw wrongPassword();
    }
    if (found.user.isDeactivated) {
      throw new MatrixError(403, 'M_USER_DEACTIVATED', 'This account has been deactivated');
    }
    if (found.user.isLocked) throw lockedAccount();
    return found.user;
  }

  /** The key by which attempts are limited: all spellings of a user id count together. */
  #limitKey(name: string): string {
    return userIdFromInput(name, this.#options.server_name).toLowerCase();
  }
}

/**
 * Returns the name in an identifier of the type `m.id.user`, or in the deprecated member `user`; `undefined`
 * for mail addresses and phone numbers, because accounts of this server have none.
 * @throws MatrixError M_MISSING_PARAM, M_BAD_JSON, M_UNKNOWN
 */
function nameIn(body: JsonObject): string | undefined {
  const identifier = body['identifier'] ?? undefined;
  if (identifier === undefined) {
    if (typeof body['user'] === 'string') return body['user'];
    if ((body['medium'] ?? undefined) !== undefined) return undefined;
    throw missingParam("'identifier' is missing");
  }
  if (!isJsonObject(identifier)) throw new MatrixError(400, 'M_BAD_JSON', "'identifier' must be an object");
  switch (identifier['type']) {
    case 'm.id.user':
      if (typeof identifier['user'] === 'string') return identifier['user'];
      throw missingParam("'identifier.user' is missing");
    case 'm.id.thirdparty':
    case 'm.id.phone':
      return undefined;
    default:
      throw new MatrixError(400, 'M_UNKNOWN', 'Unknown identifier type');
  }
}
