import type { Devices } from '../../devices/index.ts';
import { forbidden, missingParam, newUserId, type ServerName, type UserId } from '../../protocol/index.ts';
import type { Accounts } from '../accounts.ts';
import type { PasswordHasher } from '../passwords/password-hasher.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { LoginDevice, RegistrationResult } from './registered-account.ts';

export interface GuestUpgradeDeps {
  readonly accounts: Accounts;
  readonly devices: Devices;
  readonly sessions: Sessions;
  readonly hasher: PasswordHasher;
}

/** Makes users of guests, who keep their id and their rooms. Source: client-server API, "Guest Access". */
export class GuestUpgrade {
  readonly #deps: GuestUpgradeDeps;
  readonly #serverName: ServerName;

  constructor(deps: GuestUpgradeDeps, serverName: ServerName) {
    this.#deps = deps;
    this.#serverName = serverName;
  }

  /**
   * The guest who asks to become a user.
   * @param username the local part of their id @param token their access token
   * @throws MatrixError M_MISSING_PARAM without a name; M_FORBIDDEN when the token is not that guest's
   */
  async find(username: string | undefined, token: string): Promise<UserId> {
    if (username === undefined) throw missingParam("'username' is missing");
    const userId = newUserId(username, this.#serverName);
    if (userId === undefined || (await this.#deps.sessions.guestOf(token)) !== userId) {
      throw forbidden('This is not the access token of this guest');
    }
    return userId;
  }

  /** @throws MatrixError M_USER_IN_USE when they are a guest no more */
  async upgrade(
    userId: UserId,
    password: string,
    login: LoginDevice | undefined,
  ): Promise<RegistrationResult> {
    const { accounts, devices, hasher, sessions } = this.#deps;
    const passwordHash = await hasher.hash(password);
    const upgraded = await sessions.change<RegistrationResult>(userId, async (writer, publish) => {
      await accounts.upgradeGuestIn(writer, publish, userId, passwordHash);
      if (!login) return { userId, session: undefined };
      const wish = { userId, deviceId: login.deviceId, displayName: login.displayName };
      const { deviceId, created } = await devices.ensure(writer, publish, wish);
      const session = { userId, deviceId, isNewDevice: created, refreshable: login.refreshable };
      return { userId, session: { deviceId, ...(await sessions.open(writer, publish, session)) } };
    });
    await accounts.settled(userId);
    return upgraded;
  }
}
