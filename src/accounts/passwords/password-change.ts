import type { Requester } from '../../kernel/http/index.ts';
import { forbidden } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { Accounts } from '../accounts.ts';
import type { PasswordHasher } from './password-hasher.ts';
import { checkPasswordPolicy } from './password-policy.ts';

type Options = Pick<AccountOptions, 'password_config'>;

/** Whether users may change their passwords: the capability `m.change_password`. */
export function canChangePassword({ password_config }: Options): boolean {
  return password_config.enabled === true && password_config.localdb_enabled;
}

/** Changes passwords. Source: client-server API, "Password management". */
export class PasswordChange {
  readonly #accounts: Accounts;
  readonly #hasher: PasswordHasher;
  readonly #options: Options;

  constructor(deps: { accounts: Accounts; hasher: PasswordHasher }, options: Options) {
    this.#accounts = deps.accounts;
    this.#hasher = deps.hasher;
    this.#options = options;
  }

  /**
   * @throws MatrixError M_FORBIDDEN when passwords cannot be changed, and the codes of the password policy
   */
  check(password: string): void {
    if (!canChangePassword(this.#options)) throw forbidden('Passwords cannot be changed on this server');
    checkPasswordPolicy(password, this.#options.password_config.policy);
  }

  /** Changes the requester's password. @param logoutDevices end the user's other sessions */
  async change(requester: Requester, password: string, logoutDevices: boolean): Promise<void> {
    this.check(password);
    const hash = await this.#hasher.hash(password);
    const { tokenId, deviceId } = requester;
    await this.#accounts.setPassword(requester.userId, hash, logoutDevices ? { tokenId, deviceId } : 'none');
  }

  /** @throws MatrixError M_FORBIDDEN when this server stores no passwords */
  checkForAdmin(): void {
    if (!this.#options.password_config.localdb_enabled) {
      throw forbidden('Passwords cannot be set on this server');
    }
  }

  /**
   * Returns the hash of a password that an administrator sets, without checking the policy.
   * @throws MatrixError M_FORBIDDEN when this server stores no passwords
   */
  async hashForAdmin(password: string): Promise<string> {
    this.checkForAdmin();
    return this.#hasher.hash(password);
  }

  /** Sets a password for an administrator. @throws as `hashForAdmin`, M_NOT_FOUND */
  async reset(userId: string, password: string, logoutDevices: boolean): Promise<void> {
    const hash = await this.hashForAdmin(password);
    await this.#accounts.setPassword(userId, hash, logoutDevices ? 'all' : 'none');
  }
}
