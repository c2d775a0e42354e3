import type { Devices } from '../devices/index.ts';
import type { Clock } from '../kernel/clock.ts';
import { type AnyWriter, type Database, writerFor } from '../kernel/database/index.ts';
import { jsonFacts, type Publish, Stream } from '../kernel/streams/index.ts';
import { MatrixError, notFound } from '../protocol/index.ts';
import type { InteractiveAuth } from './interactive-auth/interactive-auth.ts';
import type { Sessions } from './sessions/sessions.ts';
import type { AccountTables } from './tables.ts';
import {
  insertUser,
  isTaken,
  type NewUser,
  readUser,
  type User,
  type UserFlags,
  updateUser,
  upgradeGuest,
} from './user-store.ts';

/** What became of an account. */
export type AccountChange =
  | { readonly kind: 'registered'; readonly userId: string; readonly isGuest: boolean }
  | {
      readonly kind: 'deactivated';
      readonly userId: string;
      /** Hide what the user sent from those who join later. */
      readonly erase: boolean;
    };

/** An account that is being made. */
export interface RegisteredAccount {
  readonly userId: string;
  readonly isGuest: boolean;
  /** Asked for by whoever makes it. */
  readonly displayName: string | undefined;
}

/** Somebody who keeps things for an account, and makes or drops them in the same transaction. */
export interface AccountLifecycle {
  registered?(writer: AnyWriter, publish: Publish, account: RegisteredAccount): Promise<void>;
  /** A guest becomes a user. */
  upgraded?(writer: AnyWriter, publish: Publish, account: { userId: string }): Promise<void>;
  deactivated?(
    writer: AnyWriter,
    publish: Publish,
    account: { userId: string; erase: boolean },
  ): Promise<void>;
  /** Waits, some seconds at most, for what it had ordered for later in one of these transactions. */
  settled?(userId: string): Promise<void>;
}

export interface AccountsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly devices: Devices;
  readonly sessions: Sessions;
  readonly interactiveAuth: InteractiveAuth;
}

export const userInUse = () => new MatrixError(400, 'M_USER_IN_USE', 'This user name is taken');

/** The accounts of this server. */
export class Accounts {
  readonly accountStream = new Stream<AccountChange>('accounts', jsonFacts());
  readonly #deps: AccountsDeps;
  readonly #lifecycleHooks: readonly AccountLifecycle[];

  constructor(deps: AccountsDeps, lifecycleHooks: readonly AccountLifecycle[]) {
    this.#deps = deps;
    this.#lifecycleHooks = lifecycleHooks;
  }

  /** `undefined` when this server has no such account. Deactivated ones are there. */
  getUser(userId: string): Promise<User | undefined> {
    return readUser(this.#deps.database.reader<AccountTables>(), userId);
  }

  /** Whether there is such an account and it is not deactivated. */
  async userExists(userId: string): Promise<boolean> {
    const user = await this.getUser(userId);
    return user !== undefined && !user.isDeactivated;
  }

  /** Whether the user is a server administrator; nobody without an account is. */
  async isAdmin(userId: string): Promise<boolean> {
    return (await this.getUser(userId))?.isAdmin === true;
  }

  /** Whether somebody has the id already, or had it. */
  isTaken(userId: string): Promise<boolean> {
    return isTaken(this.#deps.database.reader<AccountTables>(), userId);
  }

  /** Makes an account inside the caller's transaction. Throws MatrixError M_USER_IN_USE. */
  async createIn(
    writer: AnyWriter,
    publish: Publish,
    user: Omit<NewUser, 'createdAt'> & { displayName?: string | undefined },
  ): Promise<void> {
    const { displayName, ...row } = user;
    const { userId, isGuest } = row;
    const users = writerFor<AccountTables>(writer);
    if (await isTaken(users, userId)) throw userInUse();
    if (!(await insertUser(users, { ...row, createdAt: this.#deps.clock.now() }))) throw userInUse();
    const account = { userId, isGuest, displayName };
    for (const hooks of this.#lifecycleHooks) await hooks.registered?.(writer, publish, account);
    publish(this.accountStream, { kind: 'registered', userId, isGuest });
  }

  /**
   * Makes a guest a user inside the caller's transaction, which is one of `Sessions.change`.
   * @throws MatrixError M_USER_IN_USE when there is no such guest any more
   */
  async upgradeGuestIn(
    writer: AnyWriter,
    publish: Publish,
    userId: string,
    passwordHash: string,
  ): Promise<void> {
    if (!(await upgradeGuest(writerFor<AccountTables>(writer), userId, passwordHash))) throw userInUse();
    for (const hooks of this.#lifecycleHooks) await hooks.upgraded?.(writer, publish, { userId });
  }

  /**
   * Resolves when what follows the making or closing of an account has happened, or when that takes too long: whoever
   * asked for it looks at it next.
   */
  async settled(userId: string): Promise<void> {
    await Promise.all(this.#lifecycleHooks.map((hooks) => hooks.settled?.(userId)));
  }

  /** Client-server API, "Account locking". */
  setLocked(userId: string, locked: boolean): Promise<void> {
    return this.#setFlags(userId, { is_locked: locked ? 1 : 0 });
  }

  /** Client-server API, "Account suspension". */
  setSuspended(userId: string, suspended: boolean): Promise<void> {
    return this.#setFlags(userId, { is_suspended: suspended ? 1 : 0 });
  }

  /**
   * Sets a password.
   * @param passwordHash of `PasswordHasher`
   * @param logout which sessions end: all, none, or all but the one given
   */
  async setPassword(userId: string, passwordHash: string, logout: Logout): Promise<void> {
    await this.#deps.sessions.change(userId, async (writer, publish) => {
      const change = { password_hash: passwordHash };
      if (!(await updateUser(writerFor<AccountTables>(writer), userId, change))) throw noSuchUser();
      if (logout !== 'none')
        await this.#logoutIn(writer, publish, userId, logout === 'all' ? undefined : logout);
    });
  }

  /** Ends all sessions of a user and removes their devices. */
  async logoutAll(userId: string): Promise<void> {
    await this.#deps.sessions.change(userId, (writer, publish) => this.#logoutIn(writer, publish, userId));
  }

  /**
   * Closes an account for good: nobody can log in to it, nor take its name.
   * @throws MatrixError M_NOT_FOUND
   */
  async deactivate(userId: string, erase: boolean): Promise<void> {
    const { devices, interactiveAuth, sessions } = this.#deps;
    await sessions.change(userId, async (writer, publish) => {
      const change = { password_hash: null, is_deactivated: 1, is_admin: 0, ...(erase && { is_erased: 1 }) };
      if (!(await updateUser(writerFor<AccountTables>(writer), userId, change))) throw noSuchUser();
      await this.#logoutIn(writer, publish, userId);
      await devices.forgetAddresses(writer, userId);
      await interactiveAuth.forgetUser(writer, userId);
      for (const hooks of this.#lifecycleHooks) await hooks.deactivated?.(writer, publish, { userId, erase });
      publish(this.accountStream, { kind: 'deactivated', userId, erase });
    });
    await this.settled(userId);
  }

  async #logoutIn(writer: AnyWriter, publish: Publish, userId: string, kept?: KeptSession): Promise<void> {
    const { devices, sessions } = this.#deps;
    await devices.removeAllIn(writer, publish, userId, kept?.deviceId);
    await sessions.closeAllIn(writer, publish, userId, kept);
  }

  async #setFlags(userId: string, flags: UserFlags): Promise<void> {
    await this.#deps.sessions.change(userId, async (writer) => {
      if (!(await updateUser(writerFor<AccountTables>(writer), userId, flags))) throw noSuchUser();
    });
  }
}

/** A session that outlives the others. */
export interface KeptSession {
  readonly tokenId: number | undefined;
  readonly deviceId: string | undefined;
}

export type Logout = 'none' | 'all' | KeptSession;

const noSuchUser = () => notFound('No such user');
