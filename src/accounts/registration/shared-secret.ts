import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import type { Randomness } from '../../kernel/randomness.ts';
import { forbidden, invalidParam, MatrixError } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import { checkPasswordLength } from '../passwords/password-policy.ts';
import type { LoginDevice } from '../sessions/opened-session.ts';
import { checkUserType } from '../user-types.ts';
import { Nonces } from './nonces.ts';
import type { RegistrationResult } from './registered-account.ts';
import type { Registration } from './registration.ts';

/** The body of a request that registers an account with the shared secret. */
export interface SharedSecretRequest {
  readonly nonce: string;
  readonly username: string;
  readonly password: string;
  readonly admin?: boolean;
  readonly user_type?: string | null;
  readonly displayname?: string;
  readonly mac: string;
}

type Options = Pick<AccountOptions, 'registration_shared_secret' | 'user_types'>;

/** Milliseconds until a nonce expires. */
const nonceLifetime = 60_000;

/**
 * Creates accounts, including accounts of administrators, for programs that know `registration_shared_secret`. The
 * secret itself is never sent: a MAC proves that the program knows it.
 */
export class SharedSecretRegistration {
  readonly #registration: Registration;
  readonly #options: Options;
  readonly #nonces: Nonces;

  constructor(deps: { registration: Registration; clock: Clock; randomness: Randomness }, options: Options) {
    this.#registration = deps.registration;
    this.#options = options;
    this.#nonces = new Nonces(deps, nonceLifetime);
  }

  /**
   * Returns a nonce for one registration.
   * @throws MatrixError M_UNKNOWN when there is no secret
   */
  nonce(): string {
    this.#secret();
    return this.#nonces.issue();
  }

  /**
   * Creates the account of a request whose nonce and MAC are right. The password policy does not apply, as it does not
   * apply to other passwords that administrators set.
   * @param login the device of the session to open; absent: none is opened
   * @throws MatrixError M_UNKNOWN for a bad nonce or when there is no secret, M_FORBIDDEN for a wrong MAC,
   * M_INVALID_PARAM, and the errors of registration
   */
  async register(request: SharedSecretRequest, login?: LoginDevice): Promise<RegistrationResult> {
    const secret = this.#secret();
    if (!this.#nonces.isValid(request.nonce)) throw new MatrixError(400, 'M_UNKNOWN', 'Unknown nonce');
    const { username, password, admin = false } = request;
    if (`${username}${password}`.includes('\0'))
      throw invalidParam('The user name and the password must not contain U+0000');
    if (!macMatches(request, secret)) throw forbidden('The MAC is wrong');
    this.#nonces.markUsed(request.nonce);
    const userType = this.#checkUserType(request.user_type ?? undefined);
    checkPasswordLength(password);
    const userId = this.#registration.userIdFor(username);
    const displayName = request.displayname;
    return this.#registration.create({ userId, password, displayName, isAdmin: admin, userType, login });
  }

  #secret(): string {
    const secret = this.#options.registration_shared_secret;
    if (secret === null)
      throw new MatrixError(400, 'M_UNKNOWN', 'Registration by shared secret is not enabled');
    return secret;
  }

  #checkUserType(userType: string | undefined): string | undefined {
    if (userType === undefined) return undefined;
    checkUserType(userType, this.#options);
    return userType;
  }
}

/**
 * Returns an HMAC-SHA1 in hexadecimal over these values, separated by U+0000: nonce, user name, password, `admin` or
 * `notadmin`, and the user type if it is given. Existing registration programs compute it in this way.
 */
export function registrationMac(request: Omit<SharedSecretRequest, 'mac'>, secret: string): string {
  const parts = [request.nonce, request.username, request.password, request.admin ? 'admin' : 'notadmin'];
  if (request.user_type) parts.push(request.user_type);
  return createHmac('sha1', secret).update(parts.join('\0')).digest('hex');
}

function macMatches(request: SharedSecretRequest, secret: string): boolean {
  const expected = Buffer.from(registrationMac(request, secret));
  const given = Buffer.from(request.mac.toLowerCase());
  return given.length === expected.length && timingSafeEqual(given, expected);
}
