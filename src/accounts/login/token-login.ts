import type { AnyWriter } from '../../kernel/database/index.ts';
import { isJsonObject, type JsonObject, missingParam } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { AccountReader } from '../account-reader.ts';
import { activeAccount } from './active-account.ts';
import type { AuthenticatedUser, LoginType } from './login.ts';
import type { LoginTokens } from './login-tokens.ts';

type Options = Pick<AccountOptions, 'login_via_existing_session'>;

/** Issues a login token at the end of a login through a browser. */
export interface TokenIssuer {
  /** Whether logins through a browser are possible. */
  readonly issuesTokens: boolean;
  /**
   * Stores how the user of a new session was authenticated, in the transaction that opens the session.
   * @param details the details that were stored when the token was issued
   */
  opened(
    writer: AnyWriter,
    session: { readonly userId: string; readonly deviceId: string; readonly details: JsonObject },
  ): Promise<void>;
}

export interface TokenLoginDeps {
  readonly loginTokens: LoginTokens;
  readonly accounts: AccountReader;
  /** Absent on a server without logins through a browser. */
  readonly issuer: TokenIssuer | undefined;
}

/**
 * `m.login.token`: logs in with a token from an existing session or from a login through a browser. Source: client-server
 * API, "Token-based login".
 */
export class TokenLogin implements LoginType {
  readonly type = 'm.login.token';
  readonly #deps: TokenLoginDeps;
  readonly #options: Options;

  constructor(deps: TokenLoginDeps, options: Options) {
    this.#deps = deps;
    this.#options = options;
  }

  get isOffered(): boolean {
    return this.#options.login_via_existing_session.enabled || this.#deps.issuer?.issuesTokens === true;
  }

  flow(): JsonObject {
    return this.#options.login_via_existing_session.enabled ? { get_login_token: true } : {};
  }

  /** Authenticates the user of a token. @throws MatrixError M_MISSING_PARAM, M_FORBIDDEN, M_USER_DEACTIVATED, M_USER_LOCKED */
  async login(body: JsonObject): Promise<AuthenticatedUser> {
    const { token } = body;
    if (typeof token !== 'string') throw missingParam("'token' is missing");
    const { accounts, issuer, loginTokens } = this.#deps;
    const { userId, details } = await loginTokens.redeem(token);
    await activeAccount(accounts, userId);
    if (details === undefined || issuer === undefined) return { userId };
    const { members } = details;
    return {
      userId,
      extraFields: isJsonObject(members) ? members : undefined,
      opened: (writer, deviceId) => issuer.opened(writer, { userId, deviceId, details }),
    };
  }
}
