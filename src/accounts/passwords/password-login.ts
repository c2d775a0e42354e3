import type { Database } from '../../kernel/database/index.ts';
import {
  badJson,
  forbidden,
  isJsonObject,
  type JsonObject,
  MatrixError,
  missingParam,
} from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import {
  ProofOfAnotherUser,
  type Stage,
  type StageContext,
  type StageForm,
} from '../interactive-auth/stage.ts';
import type { AccountLimits } from '../limits.ts';
import type { AuthenticatedUser } from '../login/login.ts';
import { deactivatedAccount, lockedAccount } from '../sessions/token-errors.ts';
import type { AccountTables } from '../tables.ts';
import type { ThirdPartyIdentifiers } from '../third-party-identifiers.ts';
import { readUserForLogin, replacePasswordHash, type User, type UserSecrets } from '../user-store.ts';
import { userIdFromInput } from '../usernames.ts';
import type { PasswordHasher } from './password-hasher.ts';

export interface PasswordLoginDeps {
  readonly database: Database;
  readonly hasher: PasswordHasher;
  readonly thirdPartyIds: Pick<ThirdPartyIdentifiers, 'findUser' | 'phoneNumber'>;
  readonly limits: AccountLimits['login'];
  /** Accepts passwords that this server does not store; absent: only stored passwords are accepted. */
  readonly provider?: PasswordAuthority | undefined;
}

/** Authenticates users by passwords that this server does not store; supplied by modules. */
export interface PasswordAuthority {
  /**
   * Authenticates a user by a password.
   * @param userId the user id for the name that the client sent
   * @returns the user id of an account; undefined when the password is not accepted
   */
  authenticate(userId: string, password: string, body: JsonObject): Promise<string | undefined>;
  /**
   * Authenticates the user of a mail address or phone number. When it is absent or returns undefined, `authenticate` is
   * called with the account that has the address.
   * @returns as `authenticate`
   */
  readonly authenticateAddress?:
    | ((medium: string, address: string, password: string) => Promise<string | undefined>)
    | undefined;
}

const wrongPassword = () => forbidden('Wrong user name or password');

/** `m.login.password`, both as a login type and as a stage of interactive authentication. */
export class PasswordLogin implements Stage {
  readonly type = 'm.login.password';
  readonly form: StageForm = {
    template: 'auth_password.html',
    values: ({ requester }) => ({ user_id: requester?.userId }),
    submit: ({ password = '' }) => ({ auth: { password } }),
  };
  readonly #deps: PasswordLoginDeps;
  readonly #options: Pick<AccountOptions, 'server_name' | 'password_config'>;

  constructor(deps: PasswordLoginDeps, options: Pick<AccountOptions, 'server_name' | 'password_config'>) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Whether users can log in with a password; false with `only_for_reauth`. */
  get isOffered(): boolean {
    const { enabled, localdb_enabled } = this.#options.password_config;
    return enabled === true && this.#isPossible(localdb_enabled);
  }

  /** Whether a logged-in user can confirm actions with a password. */
  get confirms(): boolean {
    const { enabled, localdb_enabled } = this.#options.password_config;
    return enabled !== false && this.#isPossible(localdb_enabled);
  }

  /** @param checksStored whether passwords are compared with stored hashes */
  #isPossible(checksStored: boolean): boolean {
    return checksStored || this.#deps.provider !== undefined;
  }

  /**
   * Authenticates the user by the password in a login request.
   * @throws MatrixError M_FORBIDDEN for a wrong name or password, M_MISSING_PARAM, M_BAD_JSON, M_UNKNOWN,
   * M_USER_DEACTIVATED, M_USER_LOCKED, M_LIMIT_EXCEEDED
   */
  async login(body: JsonObject): Promise<AuthenticatedUser> {
    const password = body['password'];
    if (typeof password !== 'string') throw missingParam("'password' is missing");
    const name = await this.#nameIn(body);
    this.#deps.limits.account.take(this.#limitKey(name));
    const { user, passwordHash } = await this.#check(name, password, body);
    return { userId: user.userId, passwordHash };
  }

  /** Checks the password of the logged-in user, as a stage. */
  async verify(auth: JsonObject, { requester }: StageContext): Promise<boolean> {
    const password = auth['password'];
    if (typeof password !== 'string') throw missingParam("'password' is missing");
    if (requester === undefined) throw wrongPassword();
    const isNamed = (auth['identifier'] ?? auth['user'] ?? auth['medium'] ?? undefined) !== undefined;
    const name = isNamed ? await this.#nameIn(auth) : { userName: requester.userId };
    const { user } = await this.#check(name, password, auth);
    if (user.userId !== requester.userId) throw new ProofOfAnotherUser();
    return true;
  }

  /** @returns the user; the hash is absent when a module has accepted the password */
  async #check(name: LoginName, password: string, body: JsonObject): Promise<UserSecrets> {
    const { database, hasher, limits, provider } = this.#deps;
    // An unknown address is looked up like a user id, so that it takes as long as a known one.
    const userId = userIdFromInput(name.userName ?? name.unknownAddress, this.#options.server_name);
    const account = this.#limitKey(name);
    limits.failedAttempts.check(account);
    if (name.address && provider?.authenticateAddress) {
      const { medium, address: given } = name.address;
      const provided = await provider.authenticateAddress(medium, given, password);
      if (provided !== undefined) return this.#activeUser(provided);
    }
    if (provider && name.userName !== undefined) {
      const provided = await provider.authenticate(userId, password, body);
      if (provided !== undefined) return this.#activeUser(provided);
    }
    const storedUser =
      !userId.includes('\0') && this.#options.password_config.localdb_enabled
        ? await readUserForLogin(database.reader<AccountTables>(), userId)
        : undefined;
    const matches = await hasher.verify(password, storedUser?.passwordHash);
    if (!storedUser || !matches) {
      limits.failedAttempts.take(account);
      throw wrongPassword();
    }
    requireActive(storedUser.user);
    const passwordHash = await this.#renewHash(storedUser, password);
    // The hash was replaced while the password was compared with it, by another login or a change of the password.
    if (passwordHash === undefined) return this.#check(name, password, body);
    return { user: storedUser.user, passwordHash };
  }

  async #activeUser(userId: string): Promise<UserSecrets> {
    const found = await readUserForLogin(this.#deps.database.reader<AccountTables>(), userId);
    if (!found) throw wrongPassword();
    requireActive(found.user);
    return { user: found.user, passwordHash: undefined };
  }

  /**
   * Replaces a hash that was imported, or was made with fewer rounds than the option says.
   * @returns the hash that is stored; undefined when the hash to be replaced is no longer stored
   */
  async #renewHash({ user, passwordHash = '' }: UserSecrets, password: string): Promise<string | undefined> {
    const { database, hasher } = this.#deps;
    if (!hasher.isOutdated(passwordHash)) return passwordHash;
    const renewed = await hasher.hash(password);
    const isReplaced = await database.transaction<AccountTables, boolean>((writer) =>
      replacePasswordHash(writer, user.userId, passwordHash, renewed),
    );
    return isReplaced ? renewed : undefined;
  }

  /** Returns the key of the limit of attempts: all spellings and addresses of a user count together. */
  #limitKey({ userName, unknownAddress }: LoginName): string {
    if (userName === undefined) return unknownAddress;
    return userIdFromInput(userName, this.#options.server_name).toLowerCase();
  }

  /**
   * Returns the user whom a login request names.
   * Source: client-server API, "Identifier types", and the deprecated members `user`, `medium` and `address`.
   * @throws MatrixError M_MISSING_PARAM, M_BAD_JSON, M_UNKNOWN
   */
  async #nameIn(body: JsonObject): Promise<LoginName> {
    const identifier = body['identifier'] ?? undefined;
    if (identifier === undefined) {
      if (typeof body['user'] === 'string') return { userName: body['user'] };
      if ((body['medium'] ?? undefined) !== undefined) return this.#ownerOf(body);
      throw missingParam("'identifier' is missing");
    }
    if (!isJsonObject(identifier)) throw badJson("'identifier' must be an object");
    switch (identifier['type']) {
      case 'm.id.user':
        return { userName: textIn(identifier, 'user') };
      case 'm.id.thirdparty':
        return this.#ownerOf(identifier);
      case 'm.id.phone': {
        const number = textIn(identifier, 'phone' in identifier ? 'phone' : 'number');
        const address = await this.#deps.thirdPartyIds.phoneNumber(textIn(identifier, 'country'), number);
        return this.#ownerOf({ medium: 'msisdn', address: address ?? number });
      }
      default:
        throw new MatrixError(400, 'M_UNKNOWN', 'Unknown identifier type');
    }
  }

  async #ownerOf(identifier: JsonObject): Promise<LoginName> {
    const [medium, address] = [textIn(identifier, 'medium'), textIn(identifier, 'address')];
    const userName = await this.#deps.thirdPartyIds.findUser(medium, address);
    const identified = { address: { medium, address } };
    return userName === undefined
      ? { ...identified, unknownAddress: `${medium} ${address.toLowerCase()}` }
      : { ...identified, userName };
  }
}

/** @throws MatrixError M_USER_DEACTIVATED, M_USER_LOCKED */
function requireActive({ isDeactivated, isLocked }: User): void {
  if (isDeactivated) throw deactivatedAccount();
  if (isLocked) throw lockedAccount();
}

/**
 * The user whom a login request names: a user id or its local part, or an address that belongs to no account. `address` is
 * the address in the request, whether or not it belongs to an account.
 */
type LoginName = (
  | { readonly userName: string; readonly unknownAddress?: never }
  | { readonly userName?: never; readonly unknownAddress: string }
) & { readonly address?: { readonly medium: string; readonly address: string } };

/** @throws MatrixError M_MISSING_PARAM */
function textIn(object: JsonObject, name: string): string {
  const value = object[name];
  if (typeof value !== 'string') throw missingParam(`'${name}' is missing`);
  return value;
}
