import type { Devices } from '../../devices/index.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import { forbidden, missingParam, newUserId, type ServerName, type UserId } from '../../protocol/index.ts';
import type { Accounts } from '../accounts.ts';
import type { PasswordHasher } from '../passwords/password-hasher.ts';
import type { LoginDevice } from '../sessions/opened-session.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { RegistrationResult } from './registered-account.ts';

export interface GuestUpgradeDeps {
  readonly accounts: Accounts;
  readonly devices: Devices;
  readonly sessions: Sessions;
  readonly hasher: PasswordHasher;
}

/** A guest who becomes a full user. */
export interface UpgradedGuest {
  readonly userId: UserId;
  readonly password: string;
  /** Whether the user's events are accepted and not sent after the upgrade. */
  readonly isShadowBanned: boolean;
  /** The device to log in with; without it, no session is opened. */
  readonly login: LoginDevice | undefined;
  /** Runs in the transaction that upgrades the account. */
  readonly onUpgrade: (writer: AnyWriter) => Promise<void>;
}

/**
 * Upgrades guests to full users. A guest's user id and rooms stay the same. Source: client-server API, "Guest Access".
 */
export class GuestUpgrade {
  readonly #deps: GuestUpgradeDeps;
  readonly #serverName: ServerName;

  constructor(deps: GuestUpgradeDeps, serverName: ServerName) {
    this.#deps = deps;
    this.#serverName = serverName;
  }

  /**
   * Returns the user id of the guest who is to be upgraded.
   * @param username the local part of the guest's user id
   * @param token the guest's access token
   * @throws MatrixError M_MISSING_PARAM without a name; M_FORBIDDEN when the token does not belong to that
   * guest
   */
  async find(username: string | undefined, token: string): Promise<UserId> {
    if (username === undefined) throw missingParam("'username' is missing");
    const userId = newUserId(username, this.#serverName);
    if (userId === undefined || (await this.#deps.sessions.guestOf(token)) !== userId) {
      throw forbidden('The access token does not belong to this guest');
    }
    return userId;
  }

  /**
   * Makes a guest a full user, and opens a session if `guest` has a device to log in with.
   * @throws MatrixError M_USER_IN_USE when the account is no longer a guest account
   */
  async upgrade(guest: UpgradedGuest): Promise<RegistrationResult> {
    const { accounts, devices, hasher, sessions } = this.#deps;
    const { userId, password, isShadowBanned, login, onUpgrade } = guest;
    const passwordHash = await hasher.hash(password);
    const upgraded = await sessions.change<RegistrationResult>(userId, async (writer, publish) => {
      await accounts.upgradeGuestIn(writer, publish, { userId, passwordHash, isShadowBanned });
      await onUpgrade(writer);
      if (!login) return { userId, session: undefined };
      const device = { userId, deviceId: login.deviceId, displayName: login.displayName };
      const { deviceId, created } = await devices.ensure(writer, publish, device);
      const session = { userId, deviceId, isNewDevice: created, refreshable: login.refreshable };
      return { userId, session: { deviceId, ...(await sessions.open(writer, publish, session)) } };
    });
    await accounts.settled(userId);
    return upgraded;
  }
}
