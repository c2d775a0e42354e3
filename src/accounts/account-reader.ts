import type { Database } from '../kernel/database/index.ts';
import type { AccountTables } from './tables.ts';
import { isTaken, readUser, type User } from './user-store.ts';

/** Reads accounts; for slices that are opened before the service that changes accounts. */
export class AccountReader {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Returns an account, which may be deactivated; `undefined` when this server has no account with the id. */
  getUser(userId: string): Promise<User | undefined> {
    return readUser(this.#database.reader<AccountTables>(), userId);
  }

  /** Whether the account exists and is not deactivated. */
  async userExists(userId: string): Promise<boolean> {
    const user = await this.getUser(userId);
    return user !== undefined && !user.isDeactivated;
  }

  /** Whether the user is a server administrator; false for users without an account. */
  async isAdmin(userId: string): Promise<boolean> {
    return (await this.getUser(userId))?.isAdmin === true;
  }

  /** Whether an account has or had the user id, or one that differs from it only in case. */
  isTaken(userId: string): Promise<boolean> {
    return isTaken(this.#database.reader<AccountTables>(), userId);
  }
}
