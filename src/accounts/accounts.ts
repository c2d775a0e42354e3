import { type Devices, storeNoActivity } from '../devices/index.ts';
import type { Clock } from '../kernel/clock.ts';
import { type AnyWriter, type Database, writerFor } from '../kernel/database/index.ts';
import { jsonFacts, type Publish, Stream } from '../kernel/streams/index.ts';
import { MatrixError, notFound } from '../protocol/index.ts';
import type { AccountChecks } from './account-checks.ts';
import { AccountReader } from './account-reader.ts';
import type { AuthSessions } from './interactive-auth/auth-sessions.ts';
import type { Sessions } from './sessions/sessions.ts';
import type { AccountTables } from './tables.ts';
import {
  type GuestToUpgrade,
  insertUser,
  isTaken,
  type NewUser,
  type UserFlags,
  updateUser,
  upgradeGuest,
} from './user-store.ts';

/** A change of an account, published on the stream of accounts. */
export type AccountChange =
  | { readonly kind: 'registered'; readonly userId: string; readonly isGuest: boolean }
  | {
      readonly kind: 'deactivated';
      readonly userId: string;
      /** Whether the user's events are to be hidden from users who join later. */
      readonly erase: boolean;
      readonly byAdmin: boolean;
    }
  | { readonly kind: 'reactivated'; readonly userId: string };

/** An account that is being created. */
export interface RegisteredAccount {
  readonly userId: string;
  readonly isGuest: boolean;
  /** The display name given in the request that creates the account. */
  readonly displayName: string | undefined;
  /** Id of the application service that creates the account; absent when none does. */
  readonly appservice?: string | undefined;
}

/** Lifecycle hooks of accounts. All but `settled` run in the transaction that changes the account. */
export interface AccountLifecycle {
  registered?(writer: AnyWriter, publish: Publish, account: RegisteredAccount): Promise<void>;
  /** Runs when a guest account becomes a full account. */
  upgraded?(writer: AnyWriter, publish: Publish, account: { userId: string }): Promise<void>;
  deactivated?(
    writer: AnyWriter,
    publish: Publish,
    account: { userId: string; erase: boolean },
  ): Promise<void>;
  /**
   * Runs when all sessions of a user end, or all except the session in which the user has changed the password. Also
   * runs after a change of the password that ends no session, because every change of the password signs the user out
   * of all browsers.
   */
  loggedOut?(writer: AnyWriter, publish: Publish, account: { userId: string }): Promise<void>;
  /** Runs when an administrator activates a deactivated account again. */
  reactivated?(writer: AnyWriter, publish: Publish, account: { userId: string }): Promise<void>;
  /** Waits for the jobs that these hooks have scheduled, but at most some seconds. */
  settled?(userId: string): Promise<void>;
}

export interface AccountsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly devices: Devices;
  readonly sessions: Sessions;
  readonly authSessions: AuthSessions;
  /** Runs before an account is deactivated. */
  readonly checkDeactivation?: AccountChecks['deactivation'];
}

/** How an account is deactivated. */
export interface Deactivation {
  /** Whether the user's events are to be hidden from users who join later. */
  readonly erase: boolean;
  /** Whether an administrator deactivates the account. */
  readonly byAdmin: boolean;
  /** Runs after `checkDeactivation` and before the account is deactivated. */
  readonly afterCheck?: () => Promise<unknown>;
}

/** Makes the error for a user id that another account has or had. */
export const userInUse = () => new MatrixError(400, 'M_USER_IN_USE', 'This user name is taken');

/** The accounts of this server. */
export class Accounts extends AccountReader {
  readonly accountStream = new Stream<AccountChange>('accounts', jsonFacts());
  readonly #deps: AccountsDeps;
  readonly #lifecycleHooks: readonly AccountLifecycle[];

  constructor(deps: AccountsDeps, lifecycleHooks: readonly AccountLifecycle[]) {
    super(deps.database);
    this.#deps = deps;
    this.#lifecycleHooks = lifecycleHooks;
  }

  /**
   * Creates an account inside the caller's transaction.
   * @throws MatrixError M_USER_IN_USE
   */
  async createIn(
    writer: AnyWriter,
    publish: Publish,
    user: Omit<NewUser, 'createdAt'> & { displayName?: string | undefined },
  ): Promise<void> {
    const { displayName, ...row } = user;
    const { userId, isGuest, appservice } = row;
    const users = writerFor<AccountTables>(writer);
    if (await isTaken(users, userId)) throw userInUse();
    if (!(await insertUser(users, { ...row, createdAt: this.#deps.clock.now() }))) throw userInUse();
    await storeNoActivity(writer, userId);
    const account = { userId, isGuest, displayName, appservice };
    for (const hooks of this.#lifecycleHooks) await hooks.registered?.(writer, publish, account);
    publish(this.accountStream, { kind: 'registered', userId, isGuest });
  }

  /**
   * Makes a guest account a full account, inside the caller's transaction. `Sessions.change` must have opened the
   * transaction.
   * @throws MatrixError M_USER_IN_USE when the account is no longer a guest account
   */
  async upgradeGuestIn(writer: AnyWriter, publish: Publish, guest: GuestToUpgrade): Promise<void> {
    const { userId } = guest;
    if (!(await upgradeGuest(writerFor<AccountTables>(writer), guest))) throw userInUse();
    for (const hooks of this.#lifecycleHooks) await hooks.upgraded?.(writer, publish, { userId });
  }

  /**
   * Waits for jobs that follow the creation or deactivation of an account, but at most some seconds. The client then
   * sees their effects in its next request.
   */
  async settled(userId: string): Promise<void> {
    await Promise.all(this.#lifecycleHooks.map((hooks) => hooks.settled?.(userId)));
  }

  /** Locks or unlocks an account. Source: client-server API, "Account locking". */
  setLocked(userId: string, locked: boolean): Promise<void> {
    return this.#setFlags(userId, { is_locked: locked ? 1 : 0 });
  }

  /** Suspends or unsuspends an account. Source: client-server API, "Account suspension". */
  setSuspended(userId: string, suspended: boolean): Promise<void> {
    return this.#setFlags(userId, { is_suspended: suspended ? 1 : 0 });
  }

  /** Makes a user a server administrator, or takes the role away. */
  setAdmin(userId: string, isAdmin: boolean): Promise<void> {
    return this.#setFlags(userId, { is_admin: isAdmin ? 1 : 0 });
  }

  /** Shadow-bans a user, or lifts the shadow ban. Events of a shadow-banned user are accepted and not sent. */
  setShadowBanned(userId: string, banned: boolean): Promise<void> {
    return this.#setFlags(userId, { is_shadow_banned: banned ? 1 : 0 });
  }

  /** Sets the type of a user; `undefined` for users without one. @throws MatrixError M_NOT_FOUND */
  async setUserType(userId: string, userType: string | undefined): Promise<void> {
    await this.#deps.database.transaction<AccountTables, void>(async (writer) => {
      if (!(await updateUser(writer, userId, { user_type: userType ?? null }))) throw noSuchUser();
    });
  }

  /**
   * Sets a password.
   * @param passwordHash made by `PasswordHasher`
   * @param logout which sessions to end: all, none, or all but the given one
   * @param inTransaction runs in the same transaction
   * @throws MatrixError M_NOT_FOUND
   */
  async setPassword(
    userId: string,
    passwordHash: string,
    logout: LogoutScope,
    inTransaction?: (writer: AnyWriter) => Promise<void>,
  ): Promise<void> {
    await this.#deps.sessions.change(userId, async (writer, publish) => {
      const change = { password_hash: passwordHash };
      if (!(await updateUser(writerFor<AccountTables>(writer), userId, change))) throw noSuchUser();
      if (logout === 'none') await this.#signOutBrowsersIn(writer, publish, userId);
      else await this.#logoutIn(writer, publish, userId, logout === 'all' ? undefined : logout);
      await inTransaction?.(writer);
    });
  }

  /** Ends all sessions of a user, deletes their devices, and signs the user out of the pages of this server. */
  async logoutAll(userId: string): Promise<void> {
    await this.#deps.sessions.change(userId, (writer, publish) => this.#logoutIn(writer, publish, userId));
  }

  /**
   * Deactivates an account: no client can log in to it, and its user id stays reserved. Only `reactivate` undoes this.
   * @throws MatrixError M_NOT_FOUND, and the errors of the check
   */
  async deactivate(userId: string, { erase, byAdmin, afterCheck }: Deactivation): Promise<void> {
    const { devices, authSessions, sessions } = this.#deps;
    await this.#deps.checkDeactivation?.(userId, byAdmin);
    await afterCheck?.();
    await sessions.change(userId, async (writer, publish) => {
      // The password hash stays, so that only a login with the right password learns of the deactivation.
      const change = { is_deactivated: 1, is_admin: 0, ...(erase && { is_erased: 1 }) };
      if (!(await updateUser(writerFor<AccountTables>(writer), userId, change))) throw noSuchUser();
      await this.#logoutIn(writer, publish, userId);
      await sessions.closeAllOfAdministratorsIn(writer, publish, userId);
      await devices.forgetAddresses(writer, userId, erase);
      await authSessions.forgetUser(writer, userId);
      for (const hooks of this.#lifecycleHooks) await hooks.deactivated?.(writer, publish, { userId, erase });
      publish(this.accountStream, { kind: 'deactivated', userId, erase, byAdmin });
    });
    await this.settled(userId);
  }

  /**
   * Activates a deactivated account again. Only the user id is as before: devices and memberships stay deleted.
   * @param passwordHash made by `PasswordHasher`; `undefined`: the account has no password
   * @throws MatrixError M_NOT_FOUND
   */
  async reactivate(userId: string, passwordHash: string | undefined): Promise<void> {
    await this.#deps.sessions.change(userId, async (writer, publish) => {
      const change = { is_deactivated: 0, password_hash: passwordHash ?? null };
      if (!(await updateUser(writerFor<AccountTables>(writer), userId, change))) throw noSuchUser();
      for (const hooks of this.#lifecycleHooks) await hooks.reactivated?.(writer, publish, { userId });
      publish(this.accountStream, { kind: 'reactivated', userId });
    });
    await this.settled(userId);
  }

  /** @param kept the session that stays open; `undefined`: all end */
  async #logoutIn(writer: AnyWriter, publish: Publish, userId: string, kept?: KeptSession): Promise<void> {
    const { devices, sessions } = this.#deps;
    await devices.removeAllIn(writer, publish, userId, kept?.deviceId);
    await sessions.closeAllIn(writer, publish, userId, kept?.tokenId);
    await this.#signOutBrowsersIn(writer, publish, userId);
  }

  /** Signs a user out of the pages of this server in all browsers, since another person may have known the password. */
  async #signOutBrowsersIn(writer: AnyWriter, publish: Publish, userId: string): Promise<void> {
    for (const hooks of this.#lifecycleHooks) await hooks.loggedOut?.(writer, publish, { userId });
  }

  async #setFlags(userId: string, flags: UserFlags): Promise<void> {
    await this.#deps.sessions.change(userId, async (writer) => {
      if (!(await updateUser(writerFor<AccountTables>(writer), userId, flags))) throw noSuchUser();
    });
  }
}

/** The session that stays open when the other sessions of its user end. */
export interface KeptSession {
  readonly tokenId: number | undefined;
  readonly deviceId: string | undefined;
}

/** The sessions that end with a change of the password: none, all, or all but one. */
export type LogoutScope = 'none' | 'all' | KeptSession;

const noSuchUser = () => notFound('No such user');
