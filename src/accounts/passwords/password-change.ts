import type { Requester } from '../../kernel/http/index.ts';
import { forbidden, notFound } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { Accounts } from '../accounts.ts';
import type { InteractiveAuth, InteractiveAuthRequest } from '../interactive-auth/interactive-auth.ts';
import type { Flows } from '../interactive-auth/stage.ts';
import { type ThirdPartyIdentifiers, validatedAddresses } from '../third-party-identifiers.ts';
import type { PasswordHasher } from './password-hasher.ts';
import { checkPasswordPolicy } from './password-policy.ts';

type Options = Pick<AccountOptions, 'password_config'>;

/** Whether users may change their passwords: the capability `m.change_password`. */
export function canChangePassword({ password_config }: Options): boolean {
  return password_config.enabled === true && password_config.localdb_enabled;
}

export interface PasswordChangeDeps {
  readonly accounts: Accounts;
  readonly hasher: PasswordHasher;
  readonly interactiveAuth: InteractiveAuth;
  readonly thirdPartyIds: ThirdPartyIdentifiers;
}

/** Changes passwords. Source: client-server API, "Password management". */
export class PasswordChange {
  readonly #deps: PasswordChangeDeps;
  readonly #options: Options;

  constructor(deps: PasswordChangeDeps, options: Options) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Whether users may change their passwords. */
  get isPossible(): boolean {
    return canChangePassword(this.#options);
  }

  /**
   * Checks that passwords can be changed, and that a new password meets the policy.
   * @throws MatrixError M_FORBIDDEN when passwords cannot be changed, and the codes of the password policy
   */
  check(password: string): void {
    if (!this.isPossible) throw forbidden('Passwords cannot be changed on this server');
    checkPasswordPolicy(password, this.#options.password_config.policy);
  }

  /** Changes the requester's password. @param logoutDevices whether to end the user's other sessions @throws as `check` */
  async change(requester: Requester, password: string, logoutDevices: boolean): Promise<void> {
    this.check(password);
    const hash = await this.#deps.hasher.hash(password);
    const { tokenId, deviceId } = requester;
    await this.#deps.accounts.setPassword(
      requester.userId,
      hash,
      logoutDevices ? { tokenId, deviceId } : 'none',
    );
  }

  /** Flows that let a user who is not logged in set a new password; empty when there are none. */
  resetFlows(): Flows {
    return this.#deps.thirdPartyIds.resetStages().map((type) => [type]);
  }

  /**
   * Sets the password of the account whose address has just been validated for a password reset.
   * @param request the parameters of `POST /account/password`, and the completed stage; parameters that the request
   * omits come from its session
   * @throws what `InteractiveAuth.run` throws; MatrixError M_FORBIDDEN when the session has no new password or the address
   * was validated for another purpose, M_NOT_FOUND when no account has the address
   */
  async resetByAddress(
    request: Omit<InteractiveAuthRequest, 'operation' | 'flows' | 'requester'>,
  ): Promise<void> {
    const { interactiveAuth, thirdPartyIds, accounts, hasher } = this.#deps;
    const operation = 'POST /account/password by address';
    const flows = this.resetFlows();
    await interactiveAuth.run(
      { ...request, operation, flows, requester: undefined },
      async ({ body, completed }) => {
        const { new_password: password, logout_devices: logoutDevices = true } = body;
        if (typeof password !== 'string') throw forbidden('This authentication session sets no password');
        const address = validatedAddresses(completed).find(({ purpose }) => purpose === 'password_reset');
        if (address === undefined) throw forbidden('The address was validated for another purpose');
        const userId = await thirdPartyIds.findUser(address.medium, address.address);
        if (userId === undefined) throw notFound('No account has this address');
        const hash = await hasher.hash(password);
        await accounts.setPassword(userId, hash, logoutDevices ? 'all' : 'none', (writer) =>
          thirdPartyIds.endValidations(writer, address),
        );
        return {};
      },
    );
  }

  /** Checks that an administrator can set passwords. @throws MatrixError M_FORBIDDEN when this server stores no passwords */
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
    return this.#deps.hasher.hash(password);
  }

  /** Sets a user's password on behalf of an administrator. @throws as `hashForAdmin`, M_NOT_FOUND */
  async reset(userId: string, password: string, logoutDevices: boolean): Promise<void> {
    const hash = await this.hashForAdmin(password);
    await this.#deps.accounts.setPassword(userId, hash, logoutDevices ? 'all' : 'none');
  }
}
