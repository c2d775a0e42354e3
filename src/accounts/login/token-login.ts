import { forbidden, type JsonObject, missingParam } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { AccountReader } from '../account-reader.ts';
import { deactivatedAccount, lockedAccount } from '../sessions/token-errors.ts';
import type { LoginType } from './login.ts';
import type { LoginTokens } from './login-tokens.ts';

type Options = Pick<AccountOptions, 'login_via_existing_session'>;

/** `m.login.token`: logs in with a token from an existing session. Source: client-server API, "Token-based login". */
export class TokenLogin implements LoginType {
  readonly type = 'm.login.token';
  readonly #tokens: LoginTokens;
  readonly #accounts: AccountReader;
  readonly #options: Options;

  constructor(deps: { loginTokens: LoginTokens; accounts: AccountReader }, options: Options) {
    this.#tokens = deps.loginTokens;
    this.#accounts = deps.accounts;
    this.#options = options;
  }

  get opensSessions(): boolean {
    return this.#options.login_via_existing_session.enabled;
  }

  flow(): JsonObject {
    return this.#options.login_via_existing_session.enabled ? { get_login_token: true } : {};
  }

  /** @throws MatrixError M_MISSING_PARAM, M_FORBIDDEN, M_USER_DEACTIVATED, M_USER_LOCKED */
  async login(body: JsonObject): Promise<{ userId: string }> {
    const { token } = body;
    if (typeof token !== 'string') throw missingParam("'token' is missing");
    const userId = await this.#tokens.redeem(token);
    const user = await this.#accounts.getUser(userId);
    if (user === undefined) throw forbidden('The account does not exist');
    if (user.isDeactivated) throw deactivatedAccount();
    if (user.isLocked) throw lockedAccount();
    return { userId };
  }
}
