import type { Accounts, User } from '../../accounts/index.ts';
import { invalidParam, isUserId, notFound, serverOfUser } from '../../protocol/index.ts';

/** Finds the local users that requests name. */
export class LocalUsers {
  readonly #accounts: Pick<Accounts, 'getUser'>;
  readonly #serverName: string;

  constructor(accounts: Pick<Accounts, 'getUser'>, serverName: string) {
    this.#accounts = accounts;
    this.#serverName = serverName;
  }

  isLocal(userId: string): boolean {
    return serverOfUser(userId) === this.#serverName;
  }

  /** Checks that a user id is valid and of this server. @throws MatrixError M_INVALID_PARAM */
  checkLocal(userId: string): void {
    if (!isUserId(userId)) throw invalidParam('The user id is not valid');
    if (!this.isLocal(userId)) {
      throw invalidParam('The user does not belong to this server');
    }
  }

  /** Returns an account, also a deactivated one. @throws MatrixError M_INVALID_PARAM, M_NOT_FOUND */
  async get(userId: string): Promise<User> {
    const user = await this.find(userId);
    if (user === undefined) throw notFound('User not found');
    return user;
  }

  /** Returns an account that is not deactivated. @throws MatrixError M_INVALID_PARAM, M_NOT_FOUND */
  async getActive(userId: string): Promise<User> {
    const user = await this.get(userId);
    if (user.isDeactivated) throw notFound('The account is deactivated');
    return user;
  }

  /** Returns an account, also a deactivated one, or `undefined`. @throws MatrixError M_INVALID_PARAM */
  async find(userId: string): Promise<User | undefined> {
    this.checkLocal(userId);
    return userId.includes('\0') ? undefined : this.#accounts.getUser(userId);
  }
}

/**
 * Checks the user id of a local or remote user: remote users have memberships, too.
 * @throws MatrixError M_INVALID_PARAM
 */
export function requireUserId(userId: string): void {
  if (!isUserId(userId) || userId.includes('\0')) throw invalidParam('The user id is not valid');
}
