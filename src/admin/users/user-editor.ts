import type { Accounts, AccountsSlice, User } from '../../accounts/index.ts';
import { checkUserType } from '../../accounts/index.ts';
import type { Requester } from '../../kernel/http/index.ts';
import type { Profiles } from '../../profiles/index.ts';
import { invalidParam, localpartOf, MatrixError } from '../../protocol/index.ts';
import type { ExternalId, ExternalIds } from '../../sso/index.ts';
import type { AccountAddresses } from '../../third-party-ids/index.ts';
import type { LocalUsers } from './local-user.ts';

export interface UserEditorDeps {
  readonly accounts: Accounts;
  readonly registration: AccountsSlice['registration'];
  readonly passwordChange: AccountsSlice['passwordChange'];
  readonly profiles: Profiles;
  readonly users: LocalUsers;
  /** Absent on a server without third-party identifiers. */
  readonly addresses: AccountAddresses | undefined;
  /** Absent on a server without single sign-on. */
  readonly externalIds: ExternalIds | undefined;
  readonly options: Parameters<typeof checkUserType>[1];
}

/** The properties of a user to set; absent ones do not change. */
export interface UserChange {
  readonly password?: string | undefined;
  /** Whether a new password ends the sessions of the user; by default true. */
  readonly logoutDevices?: boolean | undefined;
  readonly displayName?: string | undefined;
  readonly avatarUrl?: string | undefined;
  readonly isAdmin?: boolean | undefined;
  readonly isDeactivated?: boolean | undefined;
  readonly isLocked?: boolean | undefined;
  /** Replace the mail addresses and phone numbers of the user. */
  readonly addresses?: readonly { readonly medium: string; readonly address: string }[] | undefined;
  /** Replace the ids with which the user logs in through identity providers. */
  readonly externalIds?: readonly ExternalId[] | undefined;
  /** Null removes the type. */
  readonly userType?: string | null | undefined;
}

/** Creates and changes accounts on behalf of administrators. */
export class UserEditor {
  readonly #deps: UserEditorDeps;

  constructor(deps: UserEditorDeps) {
    this.#deps = deps;
  }

  /**
   * Creates an account, or changes the existing one. A rejected request changes nothing.
   * @returns whether the account is new
   * @throws MatrixError M_INVALID_PARAM (also for changes of the requester's own account that would lock it out),
   * M_INVALID_USERNAME, M_EXCLUSIVE, M_FORBIDDEN, M_PROFILE_TOO_LARGE, and the errors about addresses and external ids
   */
  async put(requester: Requester, userId: string, change: UserChange): Promise<boolean> {
    const user = await this.#deps.users.find(userId);
    this.#check(requester, userId, user, change);
    const { displayName, avatarUrl } = change;
    await this.#deps.profiles.checkAll(userId, {
      ...(displayName !== undefined && { displayname: displayName }),
      ...(avatarUrl !== undefined && { avatar_url: avatarUrl }),
    });
    const { addresses, externalIds } = this.#deps;
    const checkedAddresses = change.addresses && (await addresses?.checkAll(userId, change.addresses));
    if (change.externalIds) await externalIds?.checkAll(userId, change.externalIds);
    if (user === undefined) await this.#create(userId, change);
    else await this.#changeAccount(user, change);
    if (checkedAddresses) await addresses?.replace(userId, checkedAddresses, user === undefined);
    if (change.externalIds) await externalIds?.replace(userId, change.externalIds);
    await this.#setProfile(requester, userId, change, user === undefined);
    const { accounts } = this.#deps;
    if (change.isLocked !== undefined && change.isLocked !== (user?.isLocked ?? false)) {
      await accounts.setLocked(userId, change.isLocked);
    }
    if (change.isDeactivated && !user?.isDeactivated)
      await accounts.deactivate(userId, { erase: false, byAdmin: true });
    return user === undefined;
  }

  #check(requester: Requester, userId: string, user: User | undefined, change: UserChange): void {
    const isOwn = requester.userId === userId;
    if (isOwn && change.isAdmin === false)
      throw invalidParam('You cannot remove your own administrator rights');
    if (isOwn && change.isDeactivated) throw invalidParam('You cannot deactivate your own account here');
    if (isOwn && change.isLocked) throw invalidParam('You cannot lock your own account');
    if (change.isDeactivated && change.isLocked) {
      throw invalidParam('An account cannot be deactivated and locked');
    }
    if (change.isDeactivated && change.password !== undefined) {
      throw invalidParam('A deactivated account cannot have a password');
    }
    if (user?.isDeactivated && change.isDeactivated === undefined && changesAccount(change)) {
      throw invalidParam('The account is deactivated: activate it to change it');
    }
    if (user?.isErased && change.isDeactivated === false) {
      throw invalidParam('An erased account cannot be activated again');
    }
    if (typeof change.userType === 'string') checkUserType(change.userType, this.#deps.options);
    if (user === undefined && this.#deps.registration.userIdFor(localpartOf(userId)) !== userId) {
      throw new MatrixError(400, 'M_INVALID_USERNAME', 'User names must not contain upper case letters');
    }
  }

  async #create(userId: string, { password, displayName, isAdmin, userType }: UserChange): Promise<void> {
    const { registration, passwordChange } = this.#deps;
    if (password !== undefined) passwordChange.checkForAdmin();
    await registration.create({
      userId: registration.userIdFor(localpartOf(userId)),
      password,
      displayName: displayName === '' ? undefined : displayName,
      isAdmin: isAdmin ?? false,
      userType: userType ?? undefined,
    });
  }

  async #changeAccount(user: User, change: UserChange): Promise<void> {
    const { accounts, passwordChange } = this.#deps;
    const { userId } = user;
    const { password, isAdmin, userType } = change;
    if (user.isDeactivated && change.isDeactivated === false) {
      const hash = password === undefined ? undefined : await passwordChange.hashForAdmin(password);
      await accounts.reactivate(userId, hash);
    } else if (password !== undefined) {
      await passwordChange.reset(userId, password, change.logoutDevices ?? true);
    }
    if (isAdmin !== undefined && isAdmin !== user.isAdmin) await accounts.setAdmin(userId, isAdmin);
    if (userType !== undefined) await accounts.setUserType(userId, userType ?? undefined);
  }

  async #setProfile(
    requester: Requester,
    userId: string,
    { displayName, avatarUrl }: UserChange,
    isNew: boolean,
  ): Promise<void> {
    const { profiles } = this.#deps;
    if (displayName !== undefined && !(isNew && displayName !== '')) {
      await profiles.set(requester, userId, 'displayname', displayName);
    }
    if (avatarUrl !== undefined && !(isNew && avatarUrl === '')) {
      await profiles.set(requester, userId, 'avatar_url', avatarUrl);
    }
  }
}

const changesAccount = (change: UserChange) => Object.values(change).some((value) => value !== undefined);
