import type { KeyObject } from 'node:crypto';
import {
  type AccountsSlice,
  type AuthenticatedUser,
  activeAccount,
  type LoginType,
} from '../../accounts/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { forbidden, type JsonObject, MatrixError, missingParam, type UserId } from '../../protocol/index.ts';
import { boundedName } from '../bounded-profile.ts';
import type { SsoConfig } from '../config.ts';
import { jwtKey } from './jwt-key.ts';

type JwtConfig = SsoConfig['jwt_config'];

export interface JwtLoginDeps {
  readonly clock: Clock;
  readonly serverName: string;
  readonly accounts: () => Pick<AccountsSlice, 'accounts' | 'registration'>;
}

/** Both spellings of the login type. The specification does not define it. */
export const jwtLoginTypes = ['org.matrix.login.jwt', 'org.proto.login.jwt'] as const;

/** Maximum difference between the clocks of the issuer and of this server, in seconds. */
const tolerance = 120;

/** Maximum characters of a token. */
const maxLength = 16_384;

const invalid = (reason: string) => forbidden(`The token is not valid: ${reason}`);

/** Logs users in with signed tokens of another system, and creates their accounts. */
export class JwtLogin implements LoginType {
  readonly type: string;
  readonly isOffered = true;
  readonly #deps: JwtLoginDeps;
  readonly #config: JwtConfig;
  readonly #key: KeyObject;

  /** @throws JwtKeyProblem when the key does not fit the algorithm; the rules of the options exclude this */
  constructor(deps: JwtLoginDeps, config: JwtConfig, type: (typeof jwtLoginTypes)[number]) {
    this.type = type;
    this.#deps = deps;
    this.#config = config;
    this.#key = jwtKey(config.algorithm ?? '', config.secret ?? '');
  }

  /** @throws MatrixError M_MISSING_PARAM, M_FORBIDDEN, M_USER_DEACTIVATED, M_USER_LOCKED */
  async login({ token }: JsonObject): Promise<AuthenticatedUser> {
    if (typeof token !== 'string') throw missingParam("'token' is missing");
    if (token.length > maxLength) throw invalid('it is too long');
    const claims = await this.#verify(token);
    const name = claims[this.#config.subject_claim ?? 'sub'];
    if (typeof name !== 'string' || name === '') throw invalid('it names no user');
    const displayName =
      this.#config.display_name_claim === null ? undefined : claims[this.#config.display_name_claim];
    const shown = typeof displayName === 'string' ? boundedName(displayName) : undefined;
    return { userId: await this.#account(name, shown) };
  }

  async #verify(token: string): Promise<Readonly<Record<string, unknown>>> {
    const { errors, jwtVerify } = await import('jose');
    const { algorithm, issuer, audiences } = this.#config;
    const now = this.#deps.clock.now();
    try {
      const { payload } = await jwtVerify(token, this.#key, {
        // Only the configured algorithm is accepted, so that a token cannot choose another one for the same
        // key.
        algorithms: [algorithm ?? ''],
        ...(issuer !== null && { issuer }),
        ...(audiences !== null && { audience: audiences }),
        clockTolerance: tolerance,
        currentDate: new Date(now),
      });
      if (audiences === null && payload.aud !== undefined)
        throw invalid('it names an audience, and this server has none');
      if (payload.iat !== undefined && payload.iat > now / 1000 + tolerance)
        throw invalid('its iat is in the future');
      return payload;
    } catch (error) {
      if (error instanceof errors.JOSEError) throw invalid(error.message);
      throw error;
    }
  }

  async #account(name: string, displayName: string | undefined): Promise<string> {
    const { accounts } = this.#deps.accounts();
    const existing = await accounts.getUser(`@${name}:${this.#deps.serverName}`);
    if (existing === undefined) return this.#create(this.#newUserId(name), displayName);
    return this.#activeUserId(existing.userId);
  }

  /** Creates an account. Returns the existing account instead if there is one with the name in lowercase. */
  async #create(userId: UserId, displayName: string | undefined): Promise<string> {
    const { accounts, registration } = this.#deps.accounts();
    if (await accounts.isTaken(userId)) return this.#activeUserId(userId);
    registration.checkNewAccount();
    return (await registration.create({ userId, displayName })).userId;
  }

  /**
   * Returns the user id if the account may log in with a token.
   * @throws MatrixError for locked and deactivated accounts, guests and users of application services
   */
  async #activeUserId(userId: string): Promise<string> {
    const user = await activeAccount(this.#deps.accounts().accounts, userId);
    if (user.isGuest || user.appservice !== undefined)
      throw forbidden('Guests and users of application services cannot log in with a JSON web token');
    return user.userId;
  }

  #newUserId(name: string): UserId {
    try {
      return this.#deps.accounts().registration.userIdFor(name);
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      throw invalid(error.message);
    }
  }
}
