import type { Database } from '../../kernel/database/index.ts';
import { forbidden, isJsonObject, type JsonObject, MatrixError, missingParam } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { Stage, StageContext } from '../interactive-auth/stage.ts';
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

/** The login type and the stage of interactive authentication `m.login.password`. */
export class PasswordLogin implements Stage {
  readonly type = 'm.login.password';
  readonly #deps: PasswordLoginDeps;
  readonly #options: Pick<AccountOptions, 'server_name' | 'password_config'>;

  constructor(deps: PasswordLoginDeps, options: Pick<AccountOptions, 'server_name' | 'password_config'>) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Whether it opens sessions; `only_for_reauth` does not. */
  get opensSessions(): boolean {
    const { enabled, localdb_enabled } = this.#options.password_config;
    return enabled === true && localdb_enabled;
  }

  /** Whether it proves who a logged-in user is. */
  get confirms(): boolean {
    const { enabled, localdb_enabled } = this.#options.password_config;
    return enabled !== false && localdb_enabled;
  }

  /**
   * Finds out whose password a login carries.
   * @throws MatrixError M_FORBIDDEN for a wrong name or password, M_USER_DEACTIVATED, M_USER_LOCKED,
   * M_LIMIT_EXCEEDED
   */
  async login(body: JsonObject): Promise<User> {
    const password = body['password'];
    if (typeof password !== 'string') throw missingParam("'password' is missing");
    const name = typedName(body);
    if (name !== undefined) this.#deps.limits.account.take(this.#accountOf(name));
    return this.#check(name, password);
  }

  /** The stage: the password of the user who is logged in. */
  async verify(auth: JsonObject, { requester }: StageContext): Promise<boolean> {
    const password = auth['password'];
    if (typeof password !== 'string') throw missingParam("'password' is missing");
    if (requester === undefined) throw wrongPassword();
    const named =
      auth['identifier'] === undefined && auth['user'] === undefined ? undefined : typedName(auth);
    const user = await this.#check(named ?? requester.userId, password);
    if (user.userId !== requester.userId) throw forbidden('This is the password of another user');
    return true;
  }

  async #check(name: string | undefined, password: string): Promise<User> {
    const { database, hasher, limits } = this.#deps;
    const userId = name === undefined ? undefined : userIdFromInput(name, this.#options.server_name);
    const account = name === undefined ? undefined : this.#accountOf(name);
    if (account !== undefined) limits.failedAttempts.check(account);
    const found =
      userId && !userId.includes('\0')
        ? await readUserForLogin(database.reader<AccountTables>(), userId)
        : undefined;
    const matches = await hasher.verify(password, found?.passwordHash);
    if (found?.user.isDeactivated) {
      throw new MatrixError(403, 'M_USER_DEACTIVATED', 'This account has been deactivated');
    }
    if (!found || !matches) {
      if (account !== undefined) limits.failedAttempts.take(account);
      throw wrongPassword();
    }
    if (found.user.isLocked) throw lockedAccount();
    return found.user;
  }

  /** What attempts are counted by: spellings that mean the same account count together. */
  #accountOf(name: string): string {
    return userIdFromInput(name, this.#options.server_name).toLowerCase();
  }
}

/**
 * The name in an identifier of the type `m.id.user`, or in the older member `user`. `undefined` for mail addresses and
 * phone numbers, which no account of this server has.
 */
function typedName(body: JsonObject): string | undefined {
  const identifier = body['identifier'];
  if (identifier === undefined) {
    if (typeof body['user'] === 'string') return body['user'];
    if (body['medium'] !== undefined) return undefined;
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
      throw new MatrixError(400, 'M_UNKNOWN', 'Unknown type of identifier');
  }
}
