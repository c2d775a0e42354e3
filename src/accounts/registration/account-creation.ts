import type { Devices } from '../../devices/index.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import type { UserId } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { Accounts } from '../accounts.ts';
import type { PasswordHasher } from '../passwords/password-hasher.ts';
import type { LoginDevice } from '../sessions/opened-session.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { AccountTables } from '../tables.ts';
import type { RegistrationResult } from './registered-account.ts';

/** An account to create; members that the caller omits have a default or no value. */
export interface NewAccount {
  readonly userId: UserId;
  readonly password?: string | undefined;
  readonly displayName?: string | undefined;
  readonly isGuest?: boolean;
  readonly isAdmin?: boolean;
  /** Whether the user's events are accepted and not sent. */
  readonly isShadowBanned?: boolean;
  /** Absent: the option `user_types.default_user_type`. */
  readonly userType?: string | undefined;
  /** Id of the application service that creates the account. */
  readonly appservice?: string | undefined;
  /** The device to log in with; without it, no session is opened. */
  readonly login?: LoginDevice | undefined;
  /** Runs in the transaction that creates the account. */
  readonly onCreate?: (writer: AnyWriter) => Promise<void>;
}

export interface AccountCreationDeps {
  readonly streams: StreamWriter;
  readonly accounts: Accounts;
  readonly devices: Devices;
  readonly sessions: Sessions;
  readonly hasher: PasswordHasher;
}

/** Creates accounts, and opens a session when a new account comes with a device to log in with. */
export class AccountCreation {
  readonly #deps: AccountCreationDeps;
  readonly #defaultUserType: string | undefined;

  constructor(deps: AccountCreationDeps, { user_types }: Pick<AccountOptions, 'user_types'>) {
    this.#deps = deps;
    this.#defaultUserType = user_types.default_user_type ?? undefined;
  }

  /**
   * Creates an account, and opens its first session if `account` has a device to log in with. Does not check who
   * requests the account.
   * @throws MatrixError M_USER_IN_USE; M_INVALID_PARAM, M_TOO_LARGE or M_FORBIDDEN when the device is refused
   */
  async create(account: NewAccount): Promise<RegistrationResult> {
    const { accounts, devices, hasher, sessions, streams } = this.#deps;
    const { userId, login, password } = account;
    if (login) devices.check(login);
    const passwordHash = password === undefined ? undefined : await hasher.hash(password);
    const user = {
      userId,
      passwordHash,
      displayName: account.displayName,
      isGuest: account.isGuest ?? false,
      isAdmin: account.isAdmin ?? false,
      isShadowBanned: account.isShadowBanned ?? false,
      userType: account.userType ?? this.#defaultUserType,
      appservice: account.appservice,
    };
    const registered = await streams.write<AccountTables, RegistrationResult>(async (writer, publish) => {
      await accounts.createIn(writer, publish, user);
      await account.onCreate?.(writer);
      if (!login) return { userId, session: undefined };
      const device = { userId, deviceId: login.deviceId, displayName: login.displayName };
      const { deviceId } = await devices.ensure(writer, publish, device);
      const { isGuest } = user;
      const session = { userId, deviceId, isNewDevice: true, refreshable: login.refreshable, isGuest };
      return { userId, session: { deviceId, ...(await sessions.open(writer, publish, session)) } };
    });
    await accounts.settled(userId);
    return registered;
  }
}
